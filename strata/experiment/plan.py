"""Read, write and check the plan in results/, and compute facts of its cells."""

import json
import math
import os
from collections.abc import Iterator
from hashlib import sha256

from strata.experiment import blocks
from strata.util import paths
from strata.util.data_types import Any, CellWork, Fields, Plan, PlannedWorkload, Source, Step
from strata.util.errors import UserError
from strata.util.files import read_json, write_if_changed
from strata.util.placeholders import convert_to_list

# The version of the plan's format: a plan with another one is rejected.
FORMAT = 11
# How a run of a lap is taken: in slices, with the runs of other environments frozen meanwhile, or
# whole, without an interruption.
SLICES, WHOLE = "slices", "whole"
# The largest number of systems that run one workload at the same time; schemas/workload.schema.json
# has the same number.
MAX_SYSTEMS = 64
MAX_PORT = 65535


def list_daemons(plan: Plan) -> set[str]:
    """Return the names of the daemons that serve the environments of the plan.

    Their CPU time is not interference (measure/interference.py).
    """
    return {
        name for environment in plan["environments"].values() for name in environment["daemons"]
    }


def select_workload(plan: Plan, environment: str, workload: str) -> PlannedWorkload:
    """Return a workload of the plan with its sizes in an environment.

    Emulated machines, and native for comparison with them, have the sizes in ``small``, which
    replace the workload's keys.
    """
    planned_workload = plan["workloads"][workload]
    if not blocks.is_unpaired(plan["environments"][environment]):
        return planned_workload
    small: Any = planned_workload.get("small", {})
    return {**planned_workload, **small}


def select_scale(plan: Plan, environment: str) -> str:
    """Return the scale of the sizes in an environment: `tiny` if the environment is in no block.

    The scale is a part of the fingerprint, and the record keeps it as `scale`.
    """
    if blocks.is_unpaired(plan["environments"][environment]):
        return blocks.SMALL_SCALE
    return plan["scale"]


def compute_cell_seed(plan: Plan, workload: str, repetition: int) -> int:
    """Return the seed of a cell, an integer from 0 to below 2^31.

    workload: the name of the workload.
    repetition: the number of the repetition, from 1; 0 gives the seed of the workload's data set.
    The seed is the same in every environment, so that all environments do equal work.  The formula
    must stay: the fingerprints of cells would not change with it, so old and new results would mix.
    """
    text = f"{plan['seed']}/{workload}/{repetition}"
    # The first 31 bits of the hash: programs take the seed as a signed integer of 32 bits.
    return int.from_bytes(sha256(text.encode()).digest()[:4], "big") >> 1


def compute_fingerprint(plan: Plan, environment: str, workload: str) -> str:
    """Return a hash of everything that decides the result of a cell, and how it is measured.

    environment: the name of the cell's environment.
    workload: the name of its workload; all repetitions have the same fingerprint.
    The hash has 16 hexadecimal digits.  A cell is measured again when it changes.  The hash of an
    unchanged cell must therefore stay: a new key may be added only for plans that use a new
    feature.
    The rule `cell` has the hash as a parameter, and each record keeps it as `fingerprint`;
    measure/pending.py compares both.
    """
    planned_workload = select_workload(plan, environment, workload)
    cell = planned_workload["cell"]
    # The keys and their values are hashed: none may be renamed.
    inputs = {
        "seed": plan["seed"],
        "scale": select_scale(plan, environment),
        "image": plan["image"]["recipe"],
        "layers": plan["environments"][environment]["layers"],
        "parameters": planned_workload["parameters"],
        "steps": [_list_deciding_parts(step) for step in cell["steps"]],
    }
    # All further keys are only in the hash where they differ from the usual case.
    if "servers" in cell or "data" in cell:
        servers = cell.get("servers", [])
        commands = [server["argv"] for server in servers]
        probes = [[server["ready"].get("argv"), server["stop"].get("argv")] for server in servers]
        inputs["servers"] = [commands, probes]
        inputs["data"] = cell.get("data", {}).get("argv")
    if has_client_commands(cell):
        inputs["client"] = plan["client"]
    if mask := plan["machine"]["mask"]:
        inputs["mask"] = mask
    if count_systems(planned_workload) > 1:
        inputs["systems"] = count_systems(planned_workload)
    laps = count_laps(plan, environment, workload)
    if laps > 1:
        inputs["laps"] = laps
    if seconds := find_slice_seconds(plan, environment, workload):
        ways = list_run_ways(plan, environment, workload)
        inputs["ways"] = ways
        if SLICES in ways:
            inputs["slice"] = seconds
    return sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:16]


def _list_deciding_parts(step: Step) -> list[Any]:
    """Return the parts of a planned step that decide a result; its time limit does not.

    Fingerprints of cells hash this list: if its format changes, all cells count as changed.
    """
    if "argv" in step:
        settings = [
            f"{key} {step[key]}" for key in ("at", "fresh", "more", "neighbour") if key in step
        ]
        return [step["step"], *step["argv"], *settings]
    if "observe" in step:
        return [step["step"], {"observe": step["observe"]}]
    # A group of steps has a condition, or runs once for each value of a parameter.
    inner_parts = [_list_deciding_parts(inner_step) for inner_step in step["steps"]]
    group = {"when": step["when"]} if "when" in step else {"for": step["for"]}
    return [step["step"], {**group, "steps": inner_parts}]


def has_client_commands(cell: CellWork) -> bool:
    """Return whether a command of a cell runs at the client: a step, or a server's probe."""
    probes = [server["ready"] for server in cell.get("servers", [])]
    return has_client_step(cell["steps"]) or any(probe.get("at") == "client" for probe in probes)


def has_client_step(steps: list[Step]) -> bool:
    """Return whether any step runs at the client, steps of groups included."""
    return any(
        step.get("at") == "client" or has_client_step(step.get("steps", [])) for step in steps
    )


def count_systems(planned_workload: PlannedWorkload) -> int:
    """Return how many systems under test run a workload at the same time.

    These are equal systems, or several equal groups of systems with roles.
    """
    parameter = planned_workload["cell"].get("systems")
    groups = 1 if parameter is None else int(planned_workload["parameters"][parameter])
    return groups * len(list_role_groups(planned_workload["cell"], planned_workload["parameters"]))


def count_laps(plan: Plan, environment: str, workload: str) -> int:
    """Return how many laps a cell has; always one in an environment without blocks."""
    planned_workload = select_workload(plan, environment, workload)
    parameter = planned_workload["cell"].get("laps")
    if parameter is None or blocks.is_unpaired(plan["environments"][environment]):
        return 1
    return int(planned_workload["parameters"][parameter])


def find_slice_seconds(plan: Plan, environment: str, workload: str) -> float | None:
    """Return the length of a slice in seconds; None if the cell's run is not sliced.

    In a slice, the run of one environment continues while those of the others are frozen.  A run is
    not sliced if the workload declares no slices, if several systems run it at the same time, or if
    the environment is in no block.
    """
    planned_workload = select_workload(plan, environment, workload)
    if count_systems(planned_workload) > 1 or blocks.is_unpaired(plan["environments"][environment]):
        return None
    return planned_workload["cell"].get("slice")


def list_run_ways(plan: Plan, environment: str, workload: str) -> list[str]:
    """Return how a cell takes its run in each lap: SLICES, WHOLE, or both in this order.

    Containers on the host's kernel take slices.  Slices hide a part of the cost of a sandbox or a
    virtual machine, which take their runs whole (docs/method.md).  Native takes both, so that it is
    compared with each in the same way.  A cell that is measured without others takes no slices.
    The tables keep the way as the column `how`.
    """
    if find_slice_seconds(plan, environment, workload) is None:
        return [WHOLE]
    kinds = {layer["kind"] for layer in plan["environments"][environment]["descriptions"]}
    if "machine" in kinds:
        return [WHOLE]
    if environment == blocks.REFERENCE or plan.get("ways") == "both":
        return [SLICES, WHOLE]
    return [WHOLE] if "sandbox" in kinds else [SLICES]


def list_role_groups(cell: CellWork, values: Fields) -> list[list[str]]:
    """Return the roles of each system in a group of systems that work together.

    cell: the `cell` of the planned workload.
    values: the workload's parameters by name; one of them lists ``ROLE+ROLE`` for each system.
    Without roles, the group is a single system with no role.
    """
    if "roles" not in cell:
        return [[]]
    return [group.split("+") for group in values[cell["roles"]["parameter"]]]


def list_ports(planned_workload: PlannedWorkload) -> list[tuple[str, int]]:
    """Return (parameter, port) for every port of a planned workload."""
    return [
        (name, port)
        for name in planned_workload["cell"].get("ports", [])
        for port in convert_to_list(planned_workload["parameters"][name])
    ]


def add_port_offset(ports: int | list[int], offset: int) -> int | list[int]:
    """Return a port, or each port of a list, increased by an offset.

    ports: a port, or a list of ports.
    offset: the number that is added; for one of several equal systems, the system's number from 0.
    Whether the result is a valid port is not checked here; see :func:`list_port_mistakes`.
    """
    return [port + offset for port in ports] if isinstance(ports, list) else ports + offset


def compute_port_offset(ports: list[int]) -> int:
    """Return the distance between the ports of two cells whose systems are up at the same time.

    ports: the ports of one system, sorted.  Without ports the distance is 0.
    measure/cell.py adds multiples of the distance to the ports; :func:`list_port_mistakes` checks
    that they stay in range.
    """
    if not ports:
        return 0
    # The span of the ports, rounded up to a multiple of MAX_SYSTEMS, plus one port for each of the
    # equal systems of a cell.
    span = ports[-1] - ports[0]
    return math.ceil(span / MAX_SYSTEMS) * MAX_SYSTEMS + MAX_SYSTEMS


def list_port_mistakes(workloads: Fields, up_together: int) -> Iterator[tuple[str, str]]:
    """Yield (key, mistake) for each port that two systems would share or that is out of range.

    workloads: the planned workloads by name.
    up_together: how many environments are up at the same time for a workload with several laps.
    """
    for name, planned_workload in workloads.items():
        system_count = count_systems(planned_workload)
        ports = list_ports(planned_workload)
        max_offset = _compute_max_port_offset(planned_workload, up_together)
        for index, (parameter, port) in enumerate(ports):
            key = f"workloads.{name}.{parameter}"
            for other_parameter, other_port in ports[:index]:
                # Two parameters may name the same port.
                if 0 < abs(other_port - port) < system_count:
                    yield (
                        key,
                        f"{port} is too close to {other_port} of {other_parameter}: "
                        f"{system_count} systems have {system_count} ports in a row; choose "
                        "another",
                    )
            if port < 1:
                yield key, f"is {port}; a port must be at least 1"
            if port + max_offset > MAX_PORT:
                yield (
                    key,
                    f"port {port} becomes {port + max_offset} in the last of the systems that "
                    f"are up together; must be at most {MAX_PORT - max_offset}",
                )


def _compute_max_port_offset(planned_workload: PlannedWorkload, up_together: int) -> int:
    """Return how far the ports of the last system are above those of the first one.

    planned_workload: the workload in the plan.
    up_together: how many environments are up at the same time for a workload with several laps.
    """
    cell = planned_workload["cell"]
    has_laps = "laps" in cell and planned_workload["parameters"][cell["laps"]] > 1
    other_cell_count = max(up_together - 1, 0) if has_laps else 0
    distance = compute_port_offset(sorted(port for _, port in list_ports(planned_workload)))
    return other_cell_count * distance + count_systems(planned_workload) - 1


def read_source_revision(project: str) -> Source:
    """Return ``{revision, changed}`` of the project's source.

    project: the path of the project's folder.  A folder whose Snakefile is a link has the source of
    the project to which the link leads.
    revision: the ID of the commit, 40 hexadecimal digits.
    changed: whether files that git tracks differ from the commit.
    Both values are None if no git repository tracks the project.  If git refuses to read a
    repository that exists there, its message is printed to standard error.  The plan and its seal
    keep the result.
    """
    from strata.util import programs, progress

    project = os.path.dirname(os.path.realpath(os.path.join(project, "Snakefile")))
    # The output of git: the commit, followed by "-dirty" if tracked files are changed.
    description = ""
    git_error = ""
    try:
        # A repository around the project that does not track it has commits of another source.
        listing = programs.run_git(project, "ls-files", "--error-unmatch", "--", "Snakefile")
        if listing.returncode == 0:
            options = ["--exclude=*", "--always", "--abbrev=40", "--dirty"]
            description = programs.run_git(project, "describe", *options).stdout.strip()
        elif listing.returncode > 1:
            # The status of an untracked file is 1.
            git_error = listing.stderr.strip()
    except UserError as error:
        # Git is not installed, for example; the project is measured all the same.
        git_error = str(error)
    if git_error and os.path.lexists(os.path.join(project, ".git")):
        progress.print_topic_message("source", f"the commit is not known: {git_error}")
    if not description:
        return {"revision": None, "changed": None}
    revision, _, suffix = description.partition("-")
    return {"revision": revision, "changed": bool(suffix)}


def _is_list_of_strings(value: object) -> bool:
    """Return whether a value is a non-empty list of strings."""
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)


def find_plan_mistakes(plan: Plan) -> list[str]:
    """Return a sentence, with file and key, for each mistake in a plan (schemas/plan.schema.json).

    plan: any value of JSON; the plan of an archive may have been written by anyone.
    A plan of another format gives a single sentence.
    """
    from strata.util import validation

    version = plan.get("format") if isinstance(plan, dict) else None
    if isinstance(version, int) and version != FORMAT:
        # Keys of another version would be unknown or missing.
        return [
            f"{paths.PLAN}: is of another version of Strata (format {version}, and this one reads "
            f"{FORMAT}): use the version that made it, such as the source in its archive"
        ]
    mistakes = validation.find_schema_faults(validation.load_schema("plan"), plan)
    if not mistakes:
        mistakes = [*_list_parameter_mistakes(plan["workloads"])]
    return [f"{paths.PLAN}: {key}: {sentence}" for key, sentence in mistakes]


def _list_parameter_mistakes(workloads: dict[str, PlannedWorkload]) -> Iterator[tuple[str, str]]:
    """Yield (key, mistake) for each parameter whose value its cell cannot use.

    workloads: the planned workloads by name, which match the plan's schema.
    The checked parameters are the numbers of systems and laps, and the roles: the schema does not
    know their names.
    """
    for workload, planned_workload in workloads.items():
        cell, values = planned_workload["cell"], planned_workload["parameters"]
        key = f"workloads.{workload}.parameters"
        for name in [cell.get("systems"), cell.get("laps")]:
            # The type of True is not int, although True is an instance of it.
            if name is not None and (type(values.get(name)) is not int or values[name] < 1):
                yield f"{key}.{name}", "missing, or not a whole number above 0"
        roles = cell.get("roles")
        if roles and not _is_list_of_strings(values.get(roles["parameter"])):
            yield f"{key}.{roles['parameter']}", "missing, or not a list of strings"


def write_plan(plan: Plan) -> None:
    """Write results/plan.json and results/plan.csv, each only if its content changed.

    plan: the complete plan, with `source`, and with `sealed` if it was sealed.
    The cells, the analysis in R and archives read these files.
    """
    write_cell_order(plan)
    write_if_changed(paths.PLAN, json.dumps(plan, indent=1, ensure_ascii=False) + "\n")


def write_cell_order(plan: Plan) -> None:
    """Write results/plan.csv: the cells whose order is decided, in this order.

    People and the analysis in R read it.  It keeps its modification time if its content stays the
    same.
    """
    write_if_changed(paths.PLAN.replace(".json", ".csv"), blocks.Order(plan).format_csv())


def read_plan() -> Plan:
    """Return the plan in results/ after a check of its format number alone.

    Every cell reads the plan, and a check against the schema would take its time;
    :func:`read_checked_plan` makes this check.
    Raises UserError if there is no plan of this format.
    """
    plan: Plan | None = read_json(paths.PLAN)
    if plan is None or plan.get("format") != FORMAT:
        problem = "there is no plan yet:"
        if os.path.exists(paths.PLAN):
            problem = f"is not a plan of format {FORMAT}: remove it;"
        raise UserError(
            f"{paths.PLAN}: {problem} `snakemake --cores 1 cells` writes one and measures it"
        )
    return plan


def read_checked_plan() -> Plan:
    """Return the plan in results/, checked against its schema.

    Raises UserError with the file and key of each mistake.
    """
    plan = read_plan()
    if mistakes := find_plan_mistakes(plan):
        raise UserError(*mistakes)
    return plan
