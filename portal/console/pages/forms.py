"""Forms of the console, with numbers in everyday units. Rules are in the services."""

from __future__ import annotations

from typing import Any

from django import forms

from eventing.conf import config
from eventing.core.errors import ApplicationError
from eventing.core.events.history import EVENTS_DEFAULT
from eventing.core.names import NAME_CHARS_MAX
from eventing.rps.models import TITLE_CHARS_MAX
from portal.console.pages.words import UNITS_S, duration, in_units

NUMBER_MAX = 10**12
_UNITS = [(name, name) for name in UNITS_S]
_PLAIN = {"autocomplete": "off", "spellcheck": "false"}


class PlainForm(forms.Form):
    """Form without colons after labels that shows a service's refusal at its field."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("label_suffix", "")
        super().__init__(*args, **kwargs)

    def refuse(self, error: ApplicationError) -> None:
        """Show `error`: at the field it begins with or names, else above the form."""
        words = error.detail.lower()
        fields = (
            ("history.max_age_s", "max_age"),
            ("history", "max_events"),
            ("the name", "name"),
            ("a name", "name"),
            ("each part of a name", "name"),
            ("a title", "title"),
            ("a lease", "lease"),
            ("ack", "ack"),
        )
        field = next((name for start, name in fields if words.startswith(start) and name in self.fields), None)
        self.add_error(field, error.detail)

    def seconds(self, field: str) -> int | None:
        """Return the duration in `field` and its unit field, in seconds."""
        number: int | None = self.cleaned_data[field]
        return None if number is None else number * UNITS_S[self.cleaned_data[f"{field}_unit"]]


def _unit_field(what: str) -> forms.ChoiceField:
    return forms.ChoiceField(choices=_UNITS, widget=forms.Select(attrs={"aria-label": f"Unit of {what}"}))


class LeaseForm(PlainForm):
    """Duration of an RP's lease, from now."""

    lease = forms.IntegerField(label="Lease", min_value=1, max_value=NUMBER_MAX)
    lease_unit = _unit_field("the lease")

    def __init__(self, *args: Any, lease_s: int | None = None, **kwargs: Any) -> None:
        number, unit = in_units(config().lease_s_default if lease_s is None else lease_s)
        kwargs.setdefault("initial", {"lease": number, "lease_unit": unit})
        super().__init__(*args, **kwargs)


class RendezvousPointForm(LeaseForm):
    """A new RP."""

    name = forms.CharField(
        label="Name",
        required=False,
        max_length=NAME_CHARS_MAX,
        help_text="Optional. Parts separated by slashes, such as <code>weather/bergen</code>; the id can be used as well.",
        widget=forms.TextInput(attrs=_PLAIN),
    )
    title = forms.CharField(
        label="Title",
        required=False,
        max_length=TITLE_CHARS_MAX,
        help_text="Optional. What is published here, for people.",
    )
    max_events = forms.IntegerField(
        label="History",
        min_value=1,
        max_value=NUMBER_MAX,
        initial=EVENTS_DEFAULT,
        help_text="Number of newest events kept for late readers.",
    )
    max_age = forms.IntegerField(
        label="Delete events after",
        required=False,
        min_value=1,
        max_value=NUMBER_MAX,
        help_text="Empty: events are kept regardless of age.",
    )
    max_age_unit = _unit_field("the age")
    ack = forms.ChoiceField(
        label="Acknowledge an event when it is",
        choices=[
            ("stored", "on disk (stored)"),
            ("replicated:all", "on disk and held by every replica of Redis (replicated:all)"),
            ("accepted", "in memory (accepted): faster, but lost on power failure"),
        ],
    )
    renewal = forms.ChoiceField(
        label="Renew the lease",
        required=False,
        choices=[("use", "on use, by publishing or reading"), ("request", "on request only")],
        initial="use",
    )
    reliability = forms.TypedChoiceField(
        label="Events arrive in time at every domain that takes part",
        required=False,
        choices=[
            ("", "as well as one path to each gives"),
            ("0.99", "99 % of them"),
            ("0.999", "99.9 % of them"),
            ("0.9999", "99.99 % of them"),
        ],
        coerce=float,
        empty_value=None,
        help_text="A target reliability: as many links carry the events as it takes. Whether it is met: <code>herald rp reliability</code>.",
    )
    field_order = (
        "name", "title", "lease", "lease_unit", "max_events", "renewal", "max_age", "max_age_unit", "ack", "reliability",
    )  # fmt: skip

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        number, unit = in_units(config().lease_s_default)
        given = {"lease": number, "lease_unit": unit, "max_age_unit": "days", "ack": config().ack_default}
        kwargs.setdefault("initial", given)
        super().__init__(*args, **kwargs)
        self.fields[
            "lease"
        ].help_text = f"The rendezvous point, its history and its subscriptions are deleted when the lease expires. At most {duration(config().lease_s_max)}."

    def wanted(self) -> dict[str, Any]:
        """Return the arguments of `rendezvous_point_create` for the form's values."""
        typed = self.cleaned_data
        return {
            "name": typed["name"] or None,
            "title": typed["title"],
            "lease_s": self.seconds("lease"),
            "history": {"max_events": typed["max_events"], "max_age_s": self.seconds("max_age")},
            "ack": typed["ack"],
            "reliability": typed["reliability"],
            "renew_on_use": typed["renewal"] != "request",
        }
