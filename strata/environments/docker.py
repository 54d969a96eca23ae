"""Docker containers of the image, run by runc, crun or by gVisor (runsc)."""

import functools
import hashlib
import json
import math
import os
import re
from collections.abc import Sequence

from strata.environments.common import (
    docker_daemon,
    engine,
    gvisor,
    limits,
    option_effects,
    passed_options,
)
from strata.host import cgroups, daemons, firewall
from strata.host.daemons import find_program
from strata.host.observe import NOT_AVAILABLE
from strata.util.data_types import Any, Fields, HostFacts
from strata.util.errors import UserError
from strata.util.files import read_json, write_json
from strata.util.process import DOCKER_GROUP, ROOT_NEEDED, can_run_as_root, capture_output
from strata.util.progress import count_one_off_time

# The kernel's name of a kind of processor → Docker's.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}
# Programs of an image get this variable if the image's ENV does not set it.
DEFAULT_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Settings that an image's programs run with: key of its configuration → instruction that sets it.
SETTINGS = {
    "Env": "ENV",
    "User": "USER",
    "WorkingDir": "WORKDIR",
    "Entrypoint": "ENTRYPOINT",
    "Volumes": "VOLUME",
}
# Options of containers on the host only, since a machine has a daemon and its own image.
HOST_OPTIONS = ("program", "dockerd", "image", "port", "rules")
# The schema of a program's absolute path.
_PROGRAM = {"type": "string", "pattern": "^/"}


@functools.cache
def inspect_image(reference: str) -> Fields:
    """Return the object that ``docker image inspect`` prints, with the added key `reference`.

    reference: the name or ID of an image that the host's daemon has; no image is fetched.
    A process inspects each image only once.
    Raises UserError with the remedy if the daemon does not have the image or cannot be used, or if
    the image is for another kind of machine than this one.
    """
    location = f"config.yaml: image.docker: is {reference}; "
    if reason := Layer.explain_unavailability() or Layer.explain_missing_permission():
        raise UserError(f"{location}{reason}")
    result = capture_output(["docker", "image", "inspect", reference], check=False)
    if result.returncode != 0:
        remedy = f"Docker has no such image here: `docker pull {reference}` fetches it"
        if not docker_daemon.read_daemon_info():
            remedy = "no Docker daemon answers: `scripts/dockerd.sh` starts one"
        raise UserError(location + remedy)
    inspected: Fields = json.loads(result.stdout)[0]
    machine = os.uname().machine
    architecture = inspected.get("Architecture")
    if inspected.get("Os") != "linux" or ARCHITECTURES.get(machine, machine) != architecture:
        raise UserError(
            f"{location}it is built for {inspected.get('Os')} on {architecture}, and this machine "
            f"is {machine}: take one for this machine"
        )
    return {**inspected, "reference": reference}


def _resolve_image_version(reference: str, image: Fields) -> Fields:
    """Return ``{name, id}`` of another version of the user's own image, for the plan.

    reference: the name or ID of that version.
    image: the configuration's ``image``.
    If the version cannot be measured, ``id`` is None, and the key ``refused`` has the reason, which
    :meth:`Layer.explain_refusal` reads.  Nothing is raised.
    Programs of the version run with the settings of the image that `image.docker` names, so both
    images must have the same :data:`SETTINGS`.
    """
    if "docker" not in image:
        reason = "image: needs image.docker, the version that native runs"
        return {"name": reference, "id": None, "refused": reason}
    try:
        native_version = inspect_image(image["docker"])
        version = inspect_image(reference)
    except UserError as error:
        return {"name": reference, "id": None, "refused": str(error)}
    for key, instruction in SETTINGS.items():
        if _normalize_image_setting(native_version, key) != _normalize_image_setting(version, key):
            reason = (
                f"image: its {instruction} is not that of {image['docker']}, as which its programs "
                f"run: make it equal in {reference}"
            )
            return {"name": reference, "id": None, "refused": reason}
    return {"name": reference, "id": version["Id"]}


def _normalize_image_setting(inspected: Fields, key: str) -> Any:
    """Return a setting of an image in a form in which equivalent settings compare as equal.

    inspected: the result of :func:`inspect_image`.
    key: a key of :data:`SETTINGS`.
    Returns a set of strings "NAME=VALUE" for "Env"; for other keys, Docker's value, or None if the
    image does not have the setting.
    """
    configuration = inspected["Config"] or {}
    value = configuration.get(key)
    if key == "Env":
        # The order of variables does not matter, and each image has a PATH.
        return {DEFAULT_PATH, *(value or ())}
    # Some versions of Docker have an empty text or list for a setting that is not set.
    return value if value else None


def format_runtime_name(resolved: Fields) -> str:
    """Return the name of a container's runtime in the configuration of Docker's daemon.

    resolved: the container's options.
    The name is, for example, "runc", "strata-crun-0123456789ab" or "strata-runsc-sandbox".  If the
    option `program` is set, it ends with 12 digits of the program's SHA-256.
    write_gvisor_runtimes in scripts/dockerd.sh must use the same names for gVisor's runtimes.
    """
    if not gvisor.is_gvisor_requested(resolved) and "program" not in resolved:
        return "runc"
    name_parts = ["strata", resolved.get("runtime", "runc")]
    if gvisor.is_gvisor_requested(resolved):
        name_parts.append(resolved["sandbox"]["stack"])
        if "files" in resolved["sandbox"]:
            name_parts.append(gvisor.GOFER)
    if "program" in resolved:
        name_parts.append(resolved["program"]["sha256"][:12])
    return "-".join(name_parts)


@functools.cache
def _hash_program(path: str) -> str:
    """Return the SHA-256 of a program in hexadecimal digits; "" if it cannot be read.

    A process reads each program only once.  :meth:`Layer.check_options` refuses missing programs.
    """
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


class Layer(engine.Container):
    """A container of the host's Docker daemon, or of the daemon in the virtual machine below.

    Options: `runtime`, which is runc, crun or runsc (gVisor); `program`, the path of another one of
    them than the installed one; `stack`, the network stack of gVisor's sandbox; `directfs`, whether
    the sandbox opens files itself; `port`, how packets reach the published ports; `rules`, the
    number of further rules of the packet filter that they meet; `options`, further ones of
    ``docker run`` that are passed on as they stand (``--network`` replaces the key
    `network`); `dockerd`, the program of a second daemon that runs the container; `image`,
    another version of the user's own image.  In the plan, these have digests or ids, ``sandbox``
    replaces `stack` and `directfs`, and ``daemon`` says what is unusual about the daemon.
    """

    title = "Docker container"
    engine_name = "Docker"
    stands_on = ("host", "vm")
    stands_idle = True
    programs = ("docker",)
    daemons = ("dockerd", "containerd", "containerd-shim", "docker-proxy", "docker-init", "runsc")
    options_schema = engine.build_container_schema(
        runtime={"enum": ["runc", "crun", "runsc"], "description": "runc, crun or runsc (gVisor)"},
        program=_PROGRAM
        | {"description": "the absolute path of another runtime than the installed one"},
        stack={
            "enum": list(gvisor.STACKS),
            "description": "whose network stack: the sandbox's own, or the host's",
        },
        port={
            "enum": ["dnat", "proxy"],
            "description": "published ports by a rule of the kernel, dnat, or by docker-proxy",
        },
        rules={
            "type": "integer",
            "minimum": 1,
            "maximum": 10000,
            "description": "further rules that packets to and from the container meet",
        },
        directfs={
            "type": "boolean",
            "description": "false: gVisor's gofer opens files for the sandbox",
        },
        dockerd=_PROGRAM
        | {"description": "the absolute path of the program of a second Docker daemon"},
        image={
            "type": "string",
            "minLength": 1,
            "description": "another version of the Docker image that image.docker names",
        },
        options=passed_options.SCHEMA,
    )

    # The guest's daemon is up before a cell begins, like the host's: under emulation, starting the
    # daemon takes longer than starting a container.
    warmup = (["systemctl", "start", "docker.service"],)

    @classmethod
    def explain_unavailability(cls) -> str | None:
        """Return why this machine can have no Docker daemon, with the remedy; None if it can.

        A daemon that is installed is sufficient: it is started when it is needed.
        """
        if reason := super().explain_unavailability():
            return reason
        if docker_daemon.is_daemon_reachable() or find_program("dockerd"):
            return None
        return "no Docker daemon answers and none is installed: start it, or run `make setup`"

    @classmethod
    def explain_missing_permission(cls) -> str | None:
        """Return why this user may not use the daemon, with the remedy; None if permitted.

        None, too, if no daemon runs yet and DOCKER_HOST names none.
        """
        socket = docker_daemon.find_usual_socket()
        if socket and daemons.has_listener(socket):
            if os.access(socket, os.W_OK):
                return None
            return f"this user may not use Docker at {socket}: {DOCKER_GROUP}"
        address = os.environ.get("DOCKER_HOST")
        # Nobody listens at `socket`, if it is set: only other addresses need a query.
        if address and (socket or not docker_daemon.read_daemon_info()):
            return (
                f"no Docker daemon answers at DOCKER_HOST, {address}: `unset DOCKER_HOST`, or "
                "start that daemon"
            )
        return None

    @classmethod
    def check_options(cls, options: Fields, below: str) -> list[tuple[str, str]]:
        """Return (option, message) for options that contradict each other or the layer below.

        Programs that do not exist, and limits that no container can have, are returned, too.
        """
        mistakes = super().check_options(options, below) + gvisor.find_gvisor_mistakes(
            options, below
        )
        if below != "host":
            for key in HOST_OPTIONS:
                if key in options:
                    mistakes.append((key, "is for containers on the host only: leave it out here"))
            if options.get("runtime") == "crun":
                mistakes.append(
                    ("runtime", "crun is not in a machine’s image; it runs only on the host")
                )
            return mistakes
        for key in ("program", "dockerd"):
            program = options.get(key)
            if program and not (os.path.isfile(program) and os.access(program, os.X_OK)):
                mistakes.append((key, f"is {program}; there is no such program to run"))
        if "program" in options and "runtime" not in options:
            mistakes.append(("program", "set runtime, too: runc, crun or runsc, whichever it is"))
        if "image" in options and "dockerd" in options:
            mistakes.append(("image", "is for containers of the host's usual daemon; leave it out"))
        for key in ("port", "rules"):
            if key in options and options.get("network") == "host":
                mistakes.append((key, "is for a bridge; the host's network has none: leave it out"))
        if "rules" in options and options.get("port") == "proxy":
            mistakes.append(("rules", "are passed by with port: proxy; leave one of them out"))
        return mistakes

    @classmethod
    def resolve_options(cls, options: Fields, config: Fields) -> Fields:
        """Return the options for the plan, completed by everything that decides a result.

        If a passed option ``--network`` names a network, `network` is set to it.  `program` and
        `dockerd` become ``{path, sha256}``, `image` becomes ``{name, id}``.  For gVisor, `sandbox`
        (:func:`gvisor.plan_sandbox`) replaces `stack` and `directfs`: it has the version of runsc,
        so that cells are measured again after an upgrade.
        :meth:`restore_options` is the inverse: change both together.
        """
        resolved = dict(options)
        if network := passed_options.find_network(options):
            resolved["network"] = network
        programs = {key: options.get(key) for key in ("program", "dockerd")}
        if options.get("runtime") == "crun":
            # Docker has no runtime with the name crun.  The path is resolved to a digest, which
            # becomes a part of the runtime's name.
            programs["program"] = options.get("program") or find_program("crun")
        for key, path in programs.items():
            if path:
                resolved[key] = {"path": path, "sha256": _hash_program(path)}
        if "image" in options:
            resolved["image"] = _resolve_image_version(options["image"], config["image"])
        if gvisor.is_gvisor_requested(options):
            resolved["sandbox"] = gvisor.plan_sandbox(resolved)
            for key in ("stack", "directfs"):
                resolved.pop(key, None)
        return resolved

    @classmethod
    def restore_options(cls, resolved: Fields) -> Fields:
        """Return the options of config.yaml from which :meth:`resolve_options` makes these options.

        The digests, IDs, versions and the daemon's differences are left out.
        """
        options = super().restore_options(resolved)
        for key in ("program", "dockerd"):
            if key in options:
                options[key] = options[key]["path"]
        if "image" in options:
            options["image"] = options["image"]["name"]
        if passed_options.find_network(options):
            options.pop("network", None)
        if "sandbox" in resolved:
            options |= gvisor.restore_gvisor_options(resolved["sandbox"])
        return options

    @classmethod
    def list_host_commands(cls) -> list[list[str]]:
        """Return the beginnings of Docker commands for the usual daemon and for second daemons.

        The list is empty if the usual daemon does not answer or this user may not use it.
        """
        if not docker_daemon.is_daemon_reachable() or cls.explain_missing_permission():
            return []
        sockets = docker_daemon.list_second_sockets()
        return [docker_daemon.build_client_command(socket) for socket in (None, *sockets)]

    def build_engine_command(self, *arguments: str) -> list[str]:
        """Return the Docker command with these arguments, for the layer below."""
        socket = docker_daemon.find_second_socket(self.options)
        return [*docker_daemon.build_client_command(socket), *arguments]

    @classmethod
    def add_observations(cls, resolved: Fields, below: str) -> Fields:
        """Return the options with the key ``daemon``: what is unusual about the host's daemon.

        The options are returned unchanged if nothing is unusual, if the daemon does not answer, or
        if it is not a daemon of this host.
        """
        socket = docker_daemon.find_second_socket(resolved)
        info = docker_daemon.read_daemon_info(socket) if below == "host" else {}
        if not info or docker_daemon.explain_foreign_daemon(info, socket):
            return resolved
        differences = docker_daemon.find_daemon_differences(resolved, info)
        return {**resolved, "daemon": differences} if differences else resolved

    @classmethod
    def explain_refusal(cls, resolved: Fields, below: str, machine: HostFacts) -> str | None:
        """Return why the machine or its daemon cannot provide this container; None if it can.

        The method checks the limits, the image, whether the daemon is this host's own, and whether
        the daemon has the needed bridge, users, log driver and runtime.  It returns the first
        reason.  A usual daemon that does not answer is not checked: a cell will start it, and check
        it then.
        """
        if below != "host":
            # A virtual machine numbers its own CPUs; its memory follows from the workloads' scale.
            return limits.explain_excess(resolved, set(range(machine["cpus"])), math.inf)
        if reason := super().explain_refusal(resolved, below, machine):
            return reason
        if reason := resolved.get("image", {}).get("refused"):
            return str(reason)
        if resolved.get("runtime") == "crun" and (reason := engine.explain_missing_runtime("crun")):
            return reason
        socket = docker_daemon.find_second_socket(resolved)
        info = docker_daemon.read_daemon_info(socket)
        if not info and socket:
            program = resolved["dockerd"]["path"]
            return (
                f"no Docker daemon of {program} answers: `scripts/dockerd.sh second {program}` "
                "starts one, as root"
            )
        if reason := docker_daemon.explain_refused_options(resolved):
            return reason
        if not info:
            return _explain_unknown_runtime(resolved, info)
        if reason := docker_daemon.explain_foreign_daemon(info, socket):
            return reason
        return (
            _explain_closed_ports(resolved)
            or docker_daemon.explain_missing_network(resolved)
            or docker_daemon.explain_mapped_users(resolved)
            or docker_daemon.explain_missing_log_driver(resolved, info)
            or _explain_unknown_runtime(resolved, info)
        )

    @classmethod
    def get_labels(cls, resolved: Fields) -> Fields:
        """Return the names that the paper uses for the container: ``{network, data}``.

        The key ``title`` is added if the daemon, crun, an image, passed options or a sandbox
        changes it, and ``kind`` for a sandbox.  One of the names must show each difference that
        :meth:`add_observations` adds.
        """
        labels = super().get_labels(resolved)
        differences = resolved.get("daemon", {})
        if "ports" in differences or resolved.get("port") == "proxy":
            labels["network"] = engine.PROXIED
        if "rules" in resolved:
            labels["network"] += f", {resolved['rules']} rules"
        if "storage" in differences:
            labels["data"] += f", {differences['storage']}"
        title = cls.title
        # The keys "ports" and "storage" are in the names of the network and the data.
        title_differences = {
            key: differences[key] for key in ("users", "seccomp") if key in differences
        }
        if title_differences:
            title += f", {docker_daemon.format_daemon_differences(title_differences)}"
        if resolved.get("runtime") == "crun":
            title += " by crun"
        if "dockerd" in resolved:
            title += f" of {resolved['dockerd']['path']}"
        if "image" in resolved:
            title += f", image {resolved['image']['name']}"
        if "options" in resolved:
            title += f" with {' '.join(resolved['options'])}"
        if gvisor.is_gvisor_requested(resolved):
            return gvisor.add_sandbox_labels(labels, resolved["sandbox"], title)
        return labels if title == cls.title else {**labels, "title": title}

    @classmethod
    def describe_for_plan(cls, resolved: Fields) -> Fields:
        """Return ``{otherwise}`` for the plan: the passed options, and the daemon's differences.

        The value is a text such as "--cpus=1.5, users remapped"; the key is missing if there is
        neither.  For a sandbox, ``doubtful`` is added, because it lacks some system calls.
        """
        facts: Fields = {}
        endings = []
        if "options" in resolved:
            endings.append(passed_options.format_options_for_label(resolved["options"]))
        if "daemon" in resolved:
            endings.append(docker_daemon.format_daemon_differences(resolved["daemon"]))
        if endings:
            facts["otherwise"] = ", ".join(endings)
        if gvisor.is_gvisor_requested(resolved):
            facts["doubtful"] = True
        return facts

    @classmethod
    def format_doctor_line(cls) -> tuple[str, bool | None, str]:
        """Return the line of `make doctor` about the daemon: ("Docker", whether usable, text).

        The text has the daemon's version and what is unusual about it, or else the reason why the
        daemon cannot be used.
        """
        if reason := cls.explain_unavailability() or cls.explain_missing_permission():
            return "Docker", False, reason
        info = docker_daemon.read_daemon_info()
        if not info:
            return "Docker", False, "no daemon answers: `scripts/dockerd.sh` starts one"
        text = f"version {info['ServerVersion']}"
        if reason := docker_daemon.explain_foreign_daemon(info):
            return "Docker", False, f"{text}: {reason}"
        # A container with these options shows all differences.
        options = {"network": "bridge", "data": "layered"}
        if differences := docker_daemon.find_daemon_differences(options, info):
            text += f"; other than usual: {docker_daemon.format_daemon_differences(differences)}"
        return "Docker", True, text

    def observe_engine(self) -> None:
        """Start the host's daemon if none answers, and read its facts for the records.

        A second daemon is not started.
        Raises UserError if the host's daemon does not answer, or is not as the plan expects.
        """
        if self.below.name == "host" and "dockerd" not in self.options:
            start_docker_daemon()
        super().observe_engine()
        if self.find_virtual_machine() is None:
            self._require_planned_daemon()

    def select_engine_facts(self, info: Fields) -> Fields:
        """Return the daemon's facts for the records.

        info: the output of ``docker info``.
        """
        return docker_daemon.select_daemon_facts(info)

    def list_run_options(self) -> list[str]:
        """Return the options for the parent of the container's control group and for the runtime.

        The runtime is always given, so that the daemon's default does not matter.
        :meth:`observe_engine` must have been called before: it reads the daemon's cgroup driver.
        """
        parent = cgroups.get_parent_group(self._facts["cgroup_driver"])
        return ["--cgroup-parent", parent, "--runtime", format_runtime_name(self.options)]

    @property
    def _image_id(self) -> str:
        """The hash of the image's content; the image is that of the options, or of the plan."""
        if "image" in self.options:
            return str(self.options["image"]["id"]).removeprefix("sha256:")
        return super()._image_id

    def list_cleanups(self) -> list[Fields]:
        """Return the journal's entries that remove the container and other things it may leave.

        If options are passed on, an entry removes the container of
        :meth:`_read_container_state`.  For a sandbox, an entry ends the processes that a failed one
        leaves.  Containers survive their daemon: clean-up starts the usual daemon, if necessary, to
        remove them.  In a virtual machine, no entry removes a container.
        """
        entries = super().list_cleanups()
        if entries and self.list_passed_options():
            entries.append(self.build_cleanup_entry(self._probe_name))
        if "dockerd" not in self.options:
            # The script starts the usual daemon, and no second one.
            entries = [{**entry, "start": "scripts/dockerd.sh"} for entry in entries]
        if gvisor.is_gvisor_requested(self.options):
            # The first entry is carried out last, when the container is removed.  The file holds
            # the container's ID, which is the name of the control group.
            entries.insert(0, {"kind": "group", "id": self.id_file})
        return entries

    def start(self) -> None:
        """Start the container, and add the firewall rules that its options request.

        The removal of each rule is written into the journal.
        Raises UserError if the container cannot be started.  With passed options, the message names
        only these and Docker's reason.  If a sandbox with its own network stack fails, the message
        also suggests the host's stack.
        """
        if self.options.get("port") == "proxy":
            firewall.add_untranslated_port_rules(self.context, self.below.get_listen_address())
        try:
            super().start()
        except UserError as error:
            # The class is kept: callers distinguish, for example, MachineError.
            raise type(error)(self._explain_failed_start(str(error))) from None
        if "rules" in self.options:
            firewall.add_nonmatching_rules(
                self.context, self._bridge_address, self.options["rules"]
            )
            if self.list_publish_options():
                # The facts counted the rules before these were added.
                self._facts["network"] |= firewall.read_packet_filter().collect_facts()

    def _explain_failed_start(self, message: str) -> str:
        """Return the message on a failed start, with Docker's reason and a remedy if there is one.

        message: the message of the error.  With passed options, it is replaced with these and
        Docker's reason.
        """
        passed_options_text = " ".join(self.list_passed_options())
        match = re.search("Error response from daemon: (.*)", message)
        if passed_options_text and match:
            message = f"Docker starts no container with {passed_options_text}: {match[1]}"
        if (
            gvisor.is_gvisor_requested(self.options)
            and self.options["sandbox"]["stack"] == "sandbox"
        ):
            message += "\nif gVisor's own network stack is the reason, set stack: host"
        return message

    def find_kernel_process(self) -> int | None:
        """Return the ID of the process that acts as the system's kernel; None without one.

        This is the process of gVisor's sandbox, or else of the virtual machine below.
        """
        if not gvisor.is_gvisor_requested(self.options):
            return super().find_kernel_process()
        # runsc gives its sandbox this name, wherever the program lies.
        pids = cgroups.list_program_processes(self.find_cgroup() or "", "runsc-sandbox")
        return pids[0] if pids else None

    def _require_planned_daemon(self) -> None:
        """Check that the daemon runs on this host, and is as the plan expects.

        If ports are published, :meth:`_require_planned_ports` checks the packet filter later.
        Raises UserError if it is not.
        """
        socket = docker_daemon.find_second_socket(self.options)
        if reason := docker_daemon.explain_foreign_daemon(self.info, socket):
            raise UserError(reason)
        # `add_observations` added this key when the plan was made.
        planned_differences = dict(self.options.get("daemon", {}))
        # The kernel has rules for published ports only once the container is up.
        checks_rules = not self.list_publish_options()
        if not checks_rules:
            planned_differences.pop("ports", None)
        with count_one_off_time():
            current_differences = docker_daemon.find_daemon_differences(
                self.options, self.info, read_rules=checks_rules
            )
        if current_differences != planned_differences:
            current = docker_daemon.format_daemon_differences(current_differences) or "as usual"
            planned = docker_daemon.format_daemon_differences(planned_differences) or "as usual"
            raise UserError(
                "the Docker daemon is not as when the plan was made, perhaps while none answered "
                f"(now: {current}; planned: {planned}): run again, and the plan is made again"
            )

    def observe_container(self) -> None:
        """Observe the effects of passed options, and check the path to the ports and the sandbox.

        Adds the observations to the facts for the records.  Raises UserError if the path or the
        sandbox is not as planned.
        """
        super().observe_container()
        if self.list_passed_options():
            self._observe_option_effects()
        if self.list_publish_options():
            self._require_planned_ports()
        if gvisor.is_gvisor_requested(self.options):
            self._require_planned_sandbox()

    @property
    def _probe_name(self) -> str:
        """The name of the containers that are started only to read the state inside them.

        At most one is up at a time.  The journal's entry removes it by this name.
        """
        return f"{self.context.id}-state"

    def _observe_option_effects(self) -> None:
        """Observe how the container differs from one without the passed options, and record it.

        Starts and removes further containers for that.  Adds the effects to the settings in the
        facts for the records, and sets `observed_differences`, which
        registry.collect_declared_differences reads.
        """
        argv = self.wrap_command(option_effects.build_container_state_command())
        state = option_effects.parse_container_state(self.run_in_layer_below(argv, check=False))
        rows, self.observed_differences = option_effects.explain_state_differences(
            self.list_passed_options(), state, self._read_container_state
        )
        self._facts["settings"] = [*self._facts.get("settings", []), *rows]

    def _read_container_state(
        self, passed: Sequence[str], number: int
    ) -> option_effects.ContainerState:
        """Return the state inside a new container with some of the passed options.

        passed: the options, each a string such as ``--cpus=1.5``.
        number: distinguishes equal containers.
        The container without options and with number 0 is started in every cell, since the
        machine's settings may change.  The states of other containers only show an option's effect,
        and are stored in files in the image's folder: a stored state is returned without starting a
        container.  A file's name is a hash of everything that decides the state.  The files are
        removed with the image.
        Raises UserError if no container starts with only these options.
        """
        options = ["--rm", "--name", self._probe_name]
        argv = self.build_start_command(
            options, passed, option_effects.build_container_state_command()
        )
        if not passed and number == 0:
            return option_effects.parse_container_state(self.run_in_layer_below(argv))
        versions = [self.info.get(key) for key in ("ServerVersion", "KernelVersion")]
        identity = json.dumps([number, self.below.name, *versions, *argv])
        # These two strings differ between systems, and do not affect the state.
        identity = identity.replace(self.below.data, "DATA").replace(self._probe_name, "NAME")
        digest = hashlib.sha256(identity.encode()).hexdigest()
        path = os.path.join(self.image["folder"], "states", f"{digest}.json")
        state: option_effects.ContainerState | None = read_json(path)
        if state is None:
            state = option_effects.parse_container_state(self.run_in_layer_below(argv))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            write_json(path, state)
        return state

    def _require_planned_ports(self) -> None:
        """Record facts of the host's bridge; check that packets reach published ports as planned.

        Adds `bridge` and `mtu` to the facts of the network.  :meth:`Container.observe_container`
        must have set the key `ports` of these facts before, which is the path of the packets.
        Raises UserError if packets take another path, or none.
        """
        facts = self._facts["network"]
        if self.find_virtual_machine() is None:
            socket = docker_daemon.find_second_socket(self.options)
            bridge = docker_daemon.read_bridge_options(self.options["network"], socket)
            facts["bridge"] = bridge.get(docker_daemon.BRIDGE, NOT_AVAILABLE)
            facts["mtu"] = bridge.get(docker_daemon.MTU, NOT_AVAILABLE)
        path = facts["ports"]
        is_proxy_planned = (
            "ports" in self.options.get("daemon", {}) or self.options.get("port") == "proxy"
        )
        planned_path = engine.PROXY if is_proxy_planned else engine.NAT
        if path == engine.NOTHING:
            raise UserError(
                "no rule of the kernel and no docker-proxy leads to the published ports: the "
                "Docker daemon has iptables and userland-proxy switched off; switch one on, or "
                "choose a network with a bridge"
            )
        if path not in (planned_path, NOT_AVAILABLE):
            raise UserError(
                f"the published ports are reached by {path}, and {planned_path} was planned, "
                "perhaps while no daemon answered: run again, and the plan is made again; if this "
                "comes again, the kernel has rules of a daemon that is gone, or lost those of this "
                "one: restart the machine, or the daemon"
            )

    def _require_planned_sandbox(self) -> None:
        """Record the sandbox's facts, and check that it is the planned sandbox.

        Sets `sandbox` in the facts for the records.
        Raises UserError if a fact is not as planned.
        """
        command_lines = cgroups.list_command_lines(self.find_cgroup() or "")
        sandbox = gvisor.observe_sandbox(command_lines, gvisor.find_runsc(self.options))
        self._facts["sandbox"] = sandbox
        if difference := gvisor.find_sandbox_mismatch(self.options["sandbox"], sandbox):
            raise UserError(
                f"the container is not in the sandbox that was planned: {difference}; run again, "
                "so that the plan says it"
            )

    def collect_facts(self) -> Fields:
        """Return ``{docker: …}`` for the records.

        The value has the daemon's facts and, if they exist, `settings` (applied limits and
        options), `network` (the path to published ports) and `sandbox`.
        """
        return {"docker": self._facts}


def _explain_closed_ports(resolved: Fields) -> str | None:
    """Return why this host cannot provide the requested path to published ports; None if it can.

    resolved: the container's options; `port` and `rules` request a path.
    """
    if resolved.get("port") == "dnat" and "ports" in resolved.get("daemon", {}):
        return (
            "the Docker daemon lets no rule lead to published ports: take `iptables: false` out of "
            "its configuration, or set port: proxy"
        )
    if resolved.get("port") == "proxy" or "rules" in resolved:
        if not find_program("iptables"):
            return "iptables is not installed: install the distribution’s package of that name"
        if not can_run_as_root():
            return f"root is needed for rules of the packet filter: {ROOT_NEEDED}"
    return None


def _explain_unknown_runtime(resolved: Fields, info: Fields) -> str | None:
    """Return why the daemon cannot run the container by its runtime, with the remedy; else None.

    resolved: the container's options.
    info: the output of ``docker info``; empty if no daemon answers yet: its runtimes are then not
    checked.
    """
    name = format_runtime_name(resolved)
    if name == "runc":
        # Every daemon has this runtime.
        return None
    # This is also the path of runc or crun: if their name is not runc, `program` is set.
    program = gvisor.find_runsc(resolved)
    arguments: list[str] = []
    if gvisor.is_gvisor_requested(resolved):
        if resolved["sandbox"]["version"] is None:
            return (
                "gVisor (runsc) is not installed: `make setup` installs it on Debian 12 and newer"
            )
        arguments = gvisor.list_runsc_arguments(resolved["sandbox"])
    if not info:
        return None
    planned_command = " ".join([program, *arguments])
    add_runtime = "scripts/dockerd.sh runtimes"
    if "program" in resolved:
        add_runtime = f"scripts/dockerd.sh runtime {name} {planned_command}"
    runtime = engine.get_nested_value(info, "Runtimes", name)
    if runtime is None:
        return (
            f"the Docker daemon does not know {planned_command} as {name}: `{add_runtime}` adds it"
        )
    daemon_path = runtime.get("path", "another program")
    daemon_arguments = runtime.get("runtimeArgs") or []
    # Without `program`, runsc may be in any folder.
    is_planned_program = program in (daemon_path, os.path.basename(daemon_path))
    has_planned_arguments = {*arguments} <= {*daemon_arguments}
    if not is_planned_program or not has_planned_arguments:
        return (
            f"the Docker daemon’s runtime {name} is not {planned_command} but "
            f"{' '.join([daemon_path, *daemon_arguments])}: take it out of its configuration, and "
            f"`{add_runtime}` adds it"
        )
    return None


def start_docker_daemon() -> None:
    """Start the usual Docker daemon by scripts/dockerd.sh, unless it answers already.

    Raises UserError if the daemon does not answer afterwards.
    """
    daemons.start_daemon_by_script(
        "no Docker daemon answers", "dockerd.sh", docker_daemon.is_daemon_reachable
    )
