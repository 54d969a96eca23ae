# Virtual machines in plans and records, as the other parts write them.

# The environments of the default config that are virtual machines.
MACHINE_LABELS <- c(vm = "{vm}", `vm-tuned` = "{vm}, tuned", `vm-docker` = "Docker in {vm}",
                    `vm-docker-hostnet` = "Docker in {vm}, host network")
OTHER_LABELS <- c(native = "Native", docker = "Docker", `docker-hostnet` = "Docker (host network)",
                  `docker-layered` = "Docker (layered storage)")

WHY <- c(kvm = "/dev/kvm is there, and a guest ran with it",
         tcg = "/dev/kvm is not there, and the processor shows neither vmx nor svm")

#' The labels of all environments
all_labels <- function(accelerator) {
  shown <- c(kvm = "KVM", tcg = "VM (TCG emulation)")[[accelerator]]
  labels <- c(OTHER_LABELS, MACHINE_LABELS)
  stats::setNames(gsub("{vm}", shown, labels, fixed = TRUE), names(labels))
}

#' The profile of an environment
profile_of <- function(name) {
  if (name == "vm-tuned") "tuned" else "default"
}

#' The plan's entry of an environment
planned_environment <- function(name, label, accelerator) {
  docker <- list(docker = list(network = if (grepl("hostnet", name)) "host" else "bridge",
                               data = if (grepl("layered", name)) "layered" else "volume"))
  if (!startsWith(name, "vm")) {
    layer <- if (name == "native") list(chroot = stats::setNames(list(), character())) else docker
    return(list(label = label, layers = list(layer), told = planned_told(list(layer)), available = TRUE,
                reason = NULL))
  }
  layers <- c(list(list(vm = list(profile = profile_of(name)))), if (grepl("docker", name)) list(docker))
  list(label = label, layers = layers, told = planned_told(layers), available = TRUE, reason = NULL,
       accelerator = accelerator, accelerator_reason = WHY[[accelerator]],
       emulated = identical(accelerator, "tcg"))
}

#' What the profiles ask for
machine_profiles <- list(
  default = list(cpu = "host-model", pinned = FALSE),
  tuned = list(cpu = "host-passthrough", pinned = TRUE, huge_pages = TRUE)
)

#' A setting of a record
setting <- function(name, asked, seen = asked, why = NULL) {
  list(name = name, asked = asked, seen = seen, applied = is.null(why), why = why)
}

#' What a record says of its virtual machine
machine_facts <- function(name, accelerator, block = 1, boot = 14 + block / 10) {
  tuned <- profile_of(name) == "tuned"
  emulated <- accelerator == "tcg"
  settings <- if (tuned) {
    list(
      setting("CPU model and topology of the host", "host-passthrough",
              if (emulated) "max" else "host-passthrough",
              if (emulated) "emulation knows no host-passthrough"),
      setting("vCPUs pinned one to one", "0\u21920, 1\u21921"),
      setting("Memory in huge pages", "2 MiB", "4 KiB", "the host has no huge pages reserved")
    )
  } else {
    list(setting("CPU model", "host-model", if (emulated) "qemu64" else "host-model",
                 if (emulated) "emulation knows no host-model"))
  }
  list(
    accelerator = accelerator, accelerator_reason = WHY[[accelerator]], profile = profile_of(name),
    started = if (tuned && block > 1) "snapshot" else "boot", attempts = if (tuned && block == 2) 2 else 1,
    boot_seconds = boot, vcpus = 2, memory_bytes = 2.1e10, host_memory_bytes = 5.1e8 + 1e6 * block,
    disk_bytes = 1.2e7 + 1e5 * block, image_disk_bytes = 1.6e9,
    data_disk = list(file_system = "ext4", options = "rw,relatime", bytes = 1e10,
                     host_file_system = "ext4"),
    settings = settings,
    versions = list(qemu = "7.2.22", libvirt = "9.0.0", vagrant = "2.3.4", `vagrant-libvirt` = "0.11.2")
  )
}

#' The system of a record
system_facts <- function(name, block, accelerator = "kvm", cells_before = 0) {
  vm <- if (startsWith(name, "vm")) machine_facts(name, accelerator, block)
  list(id = paste0("strata-", name, "-", block), up_started = "2026-01-02T03:04:05Z",
       up_seconds = c(native = 0.21, vm = 16.5, docker = 0.9)[[sub("-.*", "", name)]] + block / 100,
       cells_before = cells_before, vm = vm)
}

#' A results folder with all that the paper needs, in which some environments are virtual machines
make_machine_results <- function(accelerator, environments = names(all_labels(accelerator)), ...,
                                 change = identity) {
  slower <- c(docker = 1.01, `docker-layered` = 1.03, c(vm = 1.22, `vm-tuned` = 1.05, `vm-docker` = 1.24,
                                                       `vm-docker-hostnet` = 1.23)
              * if (accelerator == "kvm") 1 else 10)
  labels <- all_labels(accelerator)[environments]
  plan_path <- make_results(environments, labels = unname(labels), slower = slower, ...)
  results <- dirname(plan_path)
  plan <- jsonlite::read_json(plan_path)
  plan$environments <- Map(planned_environment, environments, labels, accelerator)
  plan$vm <- list(profiles = machine_profiles)
  plan$machine <- list(cpus = 2, memory_bytes = 2.5e10, cache_bytes = 32e6)
  write_json(change(plan), plan_path)
  for (path in list.files(file.path(results, "raw"), "[.]json$", recursive = TRUE, full.names = TRUE)) {
    record <- jsonlite::read_json(path)
    record$system <- system_facts(record$environment, record$block, accelerator)
    write_json(record, path)
  }
  plan_path
}
