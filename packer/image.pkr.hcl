# The image of every environment: one base, one provisioning, and of its files what containers, native runs and
# virtual machines start from.

variable "base" {
  type        = string
  description = "Name of the base root filesystem in Docker."
}

variable "tag" {
  type        = string
  description = "Name that the container image gets."
}

variable "home" {
  type        = string
  default     = ""
  description = "Mark of the installation that builds, by which what a build left is found."
}

variable "recipe" {
  type        = string
  default     = ""
  description = "Recipe that is built."
}

variable "context" {
  type        = string
  description = "Folder with the workloads to compile."
}

variable "output" {
  type        = string
  default     = "output"
  description = "Folder for the files and the box."
}

variable "box" {
  type        = string
  default     = "yes"
  description = "Whether a box for Vagrant is made too: yes or no."
}

source "docker" "container" {
  image  = var.base
  pull   = false
  commit = true
  # Without a command of its own the image would keep an entry point that cannot be cleared.
  run_command = [
    "-d", "-i", "-t", "--network", "none", "--label", "strata.home=${var.home}", "--label", "strata.building=${var.recipe}",
    "--", "{{ .Image }}", "/bin/sh",
  ]
  changes = ["LABEL strata.home= strata.building= strata.image=${var.home} strata.recipe=${var.recipe}"]
}

build {
  sources = ["source.docker.container"]

  provisioner "file" {
    source      = "${var.context}/workloads"
    destination = "/tmp"
  }

  provisioner "shell" {
    script = "packer/provision.sh"
  }

  post-processors {
    post-processor "docker-tag" {
      repository = split(":", var.tag)[0]
      tag        = [split(":", var.tag)[1]]
    }
    post-processor "shell-local" {
      environment_vars = ["TAG=${var.tag}", "OUTPUT=${var.output}", "BOX=${var.box}"]
      script           = "packer/package.sh"
    }
  }
}
