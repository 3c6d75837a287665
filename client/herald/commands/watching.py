"""`herald rp watch`: watch rules and required audience of a rendezvous point."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from herald.commands.common import Command, Target, domain_options, run
from herald.commands.output import dump

_file = click.Path(exists=True, dir_okay=False, path_type=Path)
_LIMITS = {
    "lag_events": ("lag", "events"),
    "lag_s": ("lag", "seconds"),
    "backlog_events": ("backlog", "events"),
    "backlog_s": ("backlog", "oldest_s"),
    "lease_gap_s": ("lease_gap", "s"),
    "silence_s": ("silence", "s"),
    "loss_within_s": ("loss", "within_s"),
    "endpoint_failing_s": ("endpoint", "failing_s"),
    "reliability_missed_s": ("reliability", "missed_s"),
}


@click.command(cls=Command)
@click.argument("rp")
@click.option(
    "--lag-events", type=click.IntRange(min=1), help="Alarm when the lag of a durable subscription is greater, events."
)
@click.option("--lag-s", type=click.IntRange(min=1), help="Alarm when its oldest event waits longer, seconds.")
@click.option("--backlog-events", type=click.IntRange(min=1), help="Alarm when more events wait for a peer.")
@click.option("--backlog-s", type=click.IntRange(min=1), help="Alarm when the oldest of them waits longer, seconds.")
@click.option("--lease-gap-s", type=click.IntRange(min=1), help="Alarm when a lease has less left, seconds.")
@click.option("--silence-s", type=click.IntRange(min=1), help="Alarm when there was no event for this long, seconds.")
@click.option(
    "--endpoint-failing-s",
    type=click.IntRange(min=0),
    help="Alarm when the endpoint of a durable subscription has accepted nothing for this long, seconds.",
)
@click.option(
    "--reliability-missed-s",
    type=click.IntRange(min=0),
    help="Alarm when no plan meets the target reliability for longer, seconds.",
)
@click.option(
    "--loss-within-s",
    type=click.IntRange(min=0),
    help="Alarm this many seconds before a durable subscription loses events; 0: none. Default: 600, or the domain's "
    "rule.",
)
@click.option("--source", help="With --silence-s: only events of this CloudEvents source count.")
@click.option("--severity", type=click.Choice(["warning", "critical"]), help="Default: warning.")
@click.option("--for-s", type=click.IntRange(min=0), help="Seconds that the condition must last. Default: 10.")
@click.option("--rules", type=_file, help="JSON file of rules, instead of the options above.")
@click.option(
    "--audience",
    type=_file,
    help="JSON file with the required audience: readers that must be connected while events are published.",
)
@click.option("--if-match", help="Only if they were not changed since (the etag that `herald rp show` prints).")
@click.option("--none", "nothing", is_flag=True, help="Remove all rules and the required audience.")
@domain_options
def watch(
    target: Target,
    rp: str,
    source: str | None,
    severity: str | None,
    for_s: int | None,
    rules: Path | None,
    audience: Path | None,
    nothing: bool,
    if_match: str | None,
    **limits: int | None,
) -> None:
    """Set the watch rules of a rendezvous point: the given rules replace all that it has.

    Without options, show the rules.
    """
    stated = _stated(limits, source, {"severity": severity, "for_s": for_s})
    if rules is not None and stated:
        raise click.UsageError("Give rules either by --rules FILE or by the other options.")
    changes: dict[str, Any] = {}
    if nothing:
        changes = {"watch": [], "audience": []}
    elif rules is not None or stated:
        changes["watch"] = rules_of_file(rules) if rules is not None else stated
    if audience is not None:
        changes["audience"] = rules_of_file(audience)

    async def work() -> None:
        async with target.client() as client:
            document = (
                await client.alarms.watch(rp, **changes, if_match=if_match)
                if changes
                else (await client.rps.get(rp)).document
            )
        target.show(document, _watched)

    run(work())


def _watched(document: Mapping[str, Any]) -> list[str]:
    shown = [dump(one) for one in (*document["watch"], *document["audience"])]
    return shown or ["There are no watch rules."]


def rules_of_file(path: Path) -> list[Any]:
    """Return the list in a JSON file."""
    try:
        found = json.loads(path.read_text())
    except ValueError as error:
        raise click.UsageError(f"{path} is not JSON: {error}") from error
    if not isinstance(found, list):
        raise click.UsageError(f"{path} is not a JSON list.")
    return found


def _stated(limits: dict[str, int | None], source: str | None, common: dict[str, Any]) -> list[dict[str, Any]]:
    made: dict[str, dict[str, Any]] = {}
    for option, value in limits.items():
        if value is not None:
            kind, member = _LIMITS[option]
            made.setdefault(kind, {})[member] = value
    if source is not None:
        if "silence" not in made:
            raise click.UsageError("--source needs --silence-s.")
        made["silence"]["source"] = source
    common = {name: value for name, value in common.items() if value is not None}
    if common and not made:
        raise click.UsageError("--severity and --for-s need a limit, such as --lag-events.")
    return [{kind: settings, **common} for kind, settings in made.items()]
