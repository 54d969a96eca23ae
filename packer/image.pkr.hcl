# The image of every environment: containers, native runs and virtual machines start from the files
# of one container, which is made of the base and provisioned once.

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
  description = "Mark of the installation that builds, by which leftovers of a build are found."
}

variable "context" {
  type        = string
  description = "Folder with the workloads to compile."
}

locals {
  name   = split(":", var.tag)[0]
  recipe = split(":", var.tag)[1]
}

source "docker" "container" {
  image  = var.base
  pull   = false
  commit = true
  # Without this command the image would get an entry point, which cannot be cleared again.
  run_command = [
    "-d", "-i", "-t", "--network", "none", "--label", "strata.building=${var.home}",
    "--", "{{ .Image }}", "/bin/sh",
  ]
  changes = ["LABEL strata.building= strata.image=${var.home} strata.recipe=${local.recipe}"]
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

  post-processor "docker-tag" {
    repository = local.name
    tag        = [local.recipe]
  }
}
