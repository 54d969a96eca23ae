# The image of every environment: one base, one provisioning, one packaging for each source.

variable "base" {
  type        = string
  description = "Name of the base root filesystem in Docker."
}

variable "tag" {
  type        = string
  description = "Name that the container image gets."
}

variable "context" {
  type        = string
  description = "Folder with the workloads to compile."
}

source "docker" "container" {
  image  = var.base
  pull   = false
  commit = true
  # Without a command of its own the image would keep an entry point that cannot be cleared.
  run_command = ["-d", "-i", "-t", "--network", "none", "--", "{{ .Image }}", "/bin/sh"]
}

build {
  sources = ["source.docker.container"]

  provisioner "file" {
    source      = "${var.context}/workloads"
    destination = "/tmp"
  }

  provisioner "shell" {
    environment_vars = ["PACKAGING=${source.type}"]
    script           = "packer/provision.sh"
  }

  post-processor "docker-tag" {
    only       = ["docker.container"]
    repository = split(":", var.tag)[0]
    tag        = [split(":", var.tag)[1]]
  }
}
