# The image of every environment: one base, one provisioning, one packaging for each source.

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

variable "disk" {
  type        = string
  default     = ""
  description = "Disk with the base root filesystem, for the virtual machine."
}

variable "key" {
  type        = string
  default     = ""
  description = "Private key that the disk lets in."
}

variable "accelerator" {
  type        = string
  default     = "tcg"
  description = "What runs the machine while it is provisioned: kvm or tcg."
}

variable "cpu" {
  type        = string
  default     = "Nehalem,-cx16"
  description = "Processor of that machine."
}

variable "output" {
  type        = string
  default     = "output"
  description = "Folder for the provisioned disk and its Vagrant box."
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

source "qemu" "machine" {
  disk_image       = true
  iso_url          = var.disk
  iso_checksum     = "none"
  skip_resize_disk = true
  skip_compaction  = true
  accelerator      = var.accelerator
  machine_type     = "q35"
  cpus             = 2
  memory           = 2048
  disk_interface   = "virtio"
  net_device       = "virtio-net-pci"
  format           = "qcow2"
  headless         = true
  vm_name          = "disk.qcow2"
  output_directory = "${var.output}/disk"
  qemuargs = [
    ["-cpu", var.cpu],
    ["-display", "none"],
    ["-serial", "file:${var.output}/console.log"],
  ]

  communicator           = "ssh"
  ssh_username           = "root"
  ssh_private_key_file   = var.key
  ssh_timeout            = "20m"
  ssh_handshake_attempts = 100
  boot_wait              = "1s"
  shutdown_command       = "systemctl poweroff"
  shutdown_timeout       = "10m"
}

build {
  sources = ["source.docker.container", "source.qemu.machine"]

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

  post-processor "vagrant" {
    only                = ["qemu.machine"]
    keep_input_artifact = true
    compression_level   = 0
    output              = "${var.output}/strata.box"
  }
}
