"""Types of the mappings that packages exchange, for mypy; their keys are those of the schemas.

tests/unit/test_data_types.py compares them with the schemas.  At run time each name here is `dict`:
importing `typing` would cost every cell milliseconds.  An inner mapping that no other package
receives has the type `Fields`.
"""

TYPE_CHECKING = False
if not TYPE_CHECKING:

    def __getattr__(name: str) -> type:
        """Return `dict` for every type that another module imports from this module.

        name: the type's name.  A misspelled name is not an error here: only mypy finds it.
        """
        return dict

else:
    from typing import Any as Any
    from typing import NotRequired, Required, TypedDict

    # A mapping whose keys the function that makes it describes.
    Fields = dict[str, Any]
    # The layers of an environment from the bottom up, each as {name: options}.
    Stack = list[dict[str, Fields]]
    # Mappings of a few keys, which the functions that make them describe.
    Source = Fields
    Interference = Fields
    Chosen = Fields
    Described = Fields

    class HostFacts(TypedDict):
        """The facts of a machine that decide the sizes of workloads."""

        cpus: int
        mask: str | None
        memory_bytes: int
        cache_bytes: int | None

    class PlannedEnvironment(TypedDict):
        """An environment in the plan; where `available` is false, `reason` says why."""

        label: str
        layers: Stack
        available: bool
        reason: str | None
        descriptions: list[dict[str, str]]
        daemons: list[str]
        emulated: bool
        doubtful: NotRequired[bool]
        otherwise: NotRequired[str]
        counterpart: NotRequired[bool]
        accelerator: NotRequired[str | None]
        accelerator_reason: NotRequired[str | None]

    # A step of a cell: a command, an observation, or a group of steps.
    # Its key `for` is a keyword of Python, so that no class can declare it.
    Step = TypedDict(
        "Step",
        {
            "step": Required[str],
            "argv": list[str],
            "at": str,
            "fresh": str,
            "more": str,
            "neighbour": str,
            "timeout": float,
            "observe": str,
            "for": str,
            "when": dict[str, str],
            "steps": "list[Step]",
        },
        total=False,
    )

    class CellWork(TypedDict):
        """The steps of a cell, and what the steps need.

        roles: which servers share a system, and the ports of each role.
        """

        steps: list[Step]
        files: list[str]
        systems: NotRequired[str]
        laps: NotRequired[str]
        slice: NotRequired[float]
        ram_disk: NotRequired[str]
        log_limit: NotRequired[str]
        ports: NotRequired[list[str]]
        roles: NotRequired[Fields]
        sizes: NotRequired[list[Fields]]
        facts: NotRequired[Fields]
        servers: NotRequired[list[Fields]]
        data: NotRequired[Fields]

    class PlannedWorkload(TypedDict):
        """A workload in the plan."""

        title: str
        about: str
        metrics: dict[str, Fields]
        parameters: Fields
        notes: list[str]
        warmup: str
        cell: CellWork
        memory_bytes: NotRequired[int]
        small: NotRequired[Fields]
        question: NotRequired[str]
        figures: NotRequired[list[Fields]]
        headline: NotRequired[list[Fields]]
        storage: NotRequired[bool]

    class Plan(TypedDict):
        """The plan (results/plan.json); the key `source` exists once the plan is written."""

        format: int
        scale: str
        seed: int
        order: str
        repetitions: int
        client: Fields
        interference: Interference
        image: Fields
        vm: Fields
        machine: HostFacts
        environments: dict[str, PlannedEnvironment]
        workloads: dict[str, PlannedWorkload]
        title: NotRequired[str]
        question: NotRequired[str]
        about: NotRequired[str]
        claims: NotRequired[str]
        precision: NotRequired[Fields]
        spread: NotRequired[bool]
        not_emulated: NotRequired[list[str]]
        leave_out: NotRequired[dict[str, list[str]]]
        source: NotRequired[Source]
        sealed: NotRequired[Fields]
        ways: NotRequired[str]

    class Record(TypedDict):
        """The record of a cell (results/raw/ENVIRONMENT/WORKLOAD/REPETITION.json)."""

        format: int
        environment: str
        workload: str
        repetition: int
        round: int
        fingerprint: str
        node: Fields
        started: str
        ended: str
        seconds: float
        seed: int
        scale: str
        source: Source
        parameters: Fields
        commands: list[Fields]
        ways: list[str]
        image: Fields
        system: Fields
        starting_state: Fields
        observed: Fields
        interference: Fields
        log: Fields
        patience: NotRequired[int]
        cannot: NotRequired[Fields]
        interleaved: NotRequired[list[str]]
        together: NotRequired[dict[str, str]]
        program: NotRequired[Fields]
        alone: NotRequired[str]
        laps: NotRequired[list[Fields]]
        costs: NotRequired[list[Fields]]
        sizes: NotRequired[list[Fields]]
        servers: NotRequired[list[Fields]]

    class Image(TypedDict):
        """An image in the cache: the content of its image.json, and its folder."""

        format: int
        recipe: str
        id: str
        distribution: str
        release: str
        architecture: str
        package_count: int
        file_count: int
        manifest_sha256: str
        base: str
        built: str
        folder: str
        source: NotRequired[str]
        digest: NotRequired[str | None]
        run: NotRequired[Fields]

    class WantedMachine(TypedDict, total=False):
        """The settings of a virtual machine for Vagrant and libvirt.

        Keys before `name` follow from the machine's profile and the host; `name` and later ones are
        set when the machine is prepared.
        """

        cpus: int
        memory_mib: int
        driver: str
        cpu: Fields
        topology: dict[str, int] | None
        affinity: dict[str, str]
        numa: list[Fields] | None
        huge_pages: bool
        disk: dict[str, str]
        data_disk_bytes: int
        passthrough: list[str]
        card: dict[str, str] | None
        extra: Fields
        name: str
        box: str
        data_disk: str
        console: str
        home: str
        subnet: str
        huge_pages_refused: str | None
        mac: str
        address: str
