# A container image that verifies archives and makes their papers again: R, pandoc, LaTeX, Python and git, no network.

variable "base" {
  type        = string
  description = "Name of the base root filesystem in Docker, with the distribution's packages."
}

variable "tag" {
  type        = string
  description = "Name that the image gets, as NAME:VERSION."
}

variable "wheels" {
  type        = string
  description = "Folder with the Python packages of requirements.txt, and that file."
}

source "docker" "paper" {
  image       = var.base
  pull        = false
  commit      = true
  run_command = ["-d", "-i", "-t", "--network", "none", "--", "{{ .Image }}", "/bin/sh"]
  changes = [
    "ENV PATH=/opt/venv/bin:/usr/local/bin:/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1 LANG=C.UTF-8",
    "WORKDIR /strata",
    "ENTRYPOINT [\"python3\", \"-m\", \"strata\"]",
  ]
}

build {
  sources = ["source.docker.paper"]

  provisioner "file" {
    source      = "${var.wheels}/"
    destination = "/tmp/wheels"
  }

  provisioner "shell" {
    inline = [
      "set -eu",
      "python3 -m venv /opt/venv",
      "/opt/venv/bin/pip install --quiet --no-index --find-links /tmp/wheels --require-hashes --requirement /tmp/wheels/requirements.txt",
      # A checkout that is mounted belongs to somebody else.
      "git config --system --add safe.directory '*'",
      "rm -rf /tmp/wheels",
    ]
  }

  post-processors {
    post-processor "docker-tag" {
      repository = split(":", var.tag)[0]
      tag        = [split(":", var.tag)[1]]
    }
  }
}
