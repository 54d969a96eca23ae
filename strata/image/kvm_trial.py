"""Find out whether KVM runs a guest on this host, by booting the image's kernel once."""

import os
from collections.abc import Iterable

from strata.experiment import config, planning
from strata.host import capacity
from strata.image import build
from strata.util.data_types import Fields, Plan
from strata.util.progress import print_topic_message, report_step
from strata.vm import acceleration, vagrant_box


def is_kvm_trial_needed(plan: Plan, environments: Iterable[str]) -> bool:
    """Return whether an environment has a virtual machine while KVM was not tried yet.

    plan: the plan.
    environments: the names of the environments in the plan that are checked.
    """
    for name in environments:
        environment = plan["environments"][name]
        # Only environments with a virtual machine have the key `accelerator`.  Its value is None if
        # KVM was not tried.
        if "accelerator" in environment and environment["accelerator"] is None:
            return True
    return False


def build_plan_after_trial(overrides: Fields) -> Plan:
    """Build the plan of the project in the working directory; try KVM first if the plan needs that.

    overrides: values that replace those of config.yaml.
    Some environments are available only if KVM runs a guest here.  If that is unknown,
    :func:`determine_accelerator` builds the image if necessary, which takes minutes, boots a guest,
    and stores the result, which the second plan reads.
    """
    plan = planning.build_plan(config.read_config(overrides), capacity.read_host_facts())
    if is_kvm_trial_needed(plan, plan["environments"]):
        determine_accelerator(plan["image"]["settings"])
        plan = planning.build_plan(config.read_config(overrides), capacity.read_host_facts())
    return plan


def determine_accelerator(image: Fields) -> Fields:
    """Return the accelerator of virtual machines on this host; try KVM if that is unknown.

    image: the configuration's ``image``, whose kernel is booted for the trial.  If necessary, the
    image is built first.
    Returns at least `accelerator`, "kvm" or "tcg", and `accelerator_reason`.
    The result of a trial is printed; :func:`strata.vm.acceleration.run_kvm_trial` stores it for
    later calls.
    """
    finding = acceleration.read_known_accelerator()
    if finding["accelerator"] is None:
        box = vagrant_box.require_box(build.ensure_image(image, machines=True)["recipe"])
        with report_step("vm", "testing whether KVM runs a guest"):
            finding = acceleration.run_kvm_trial(os.path.join(box["folder"], "kernel"))
        machine_name = acceleration.MACHINE_NAMES[finding["accelerator"]]
        print_topic_message("vm", f"{machine_name}: {finding['accelerator_reason']}")
    return finding
