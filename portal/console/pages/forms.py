"""The console's forms: what people type, with numbers in the units they think in. Rules live in the services."""

from __future__ import annotations

from typing import Any

from django import forms

from eventing.conf import config
from eventing.core.errors import HeraldError
from eventing.core.events.history import EVENTS_DEFAULT
from eventing.core.names import NAME_CHARS_MAX
from eventing.rps.models import TITLE_CHARS_MAX
from portal.console.pages.words import UNITS_S, duration, in_units

NUMBER_MAX = 10**12
_UNITS = [(name, name) for name in UNITS_S]
_PLAIN = {"autocomplete": "off", "spellcheck": "false"}


class PlainForm(forms.Form):
    """No colon after labels, and a service's refusal shown at its field."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("label_suffix", "")
        super().__init__(*args, **kwargs)

    def refuse(self, error: HeraldError) -> None:
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
        """The duration typed into `field` and its unit, in seconds."""
        number: int | None = self.cleaned_data[field]
        return None if number is None else number * UNITS_S[self.cleaned_data[f"{field}_unit"]]


def _unit_field(what: str) -> forms.ChoiceField:
    return forms.ChoiceField(choices=_UNITS, widget=forms.Select(attrs={"aria-label": f"Unit of {what}"}))


class LeaseForm(PlainForm):
    """How long an RP shall exist, from now."""

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
        help_text="Optional. Parts separated by slashes, such as <code>weather/bergen</code>; it can also be used by its id.",
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
        help_text="How many of the newest events late readers can still get.",
    )
    max_age = forms.IntegerField(
        label="Forget events after",
        required=False,
        min_value=1,
        max_value=NUMBER_MAX,
        help_text="Empty: they are kept whatever their age.",
    )
    max_age_unit = _unit_field("the age")
    ack = forms.ChoiceField(
        label="Answer a publisher when its event is",
        choices=[("stored", "on disk (stored)"), ("accepted", "in memory (accepted): faster, lost in a power cut")],
        initial="stored",
    )
    renewal = forms.ChoiceField(
        label="Renew the lease",
        required=False,
        choices=[("use", "while it is used: published at or read"), ("request", "by request only")],
        initial="use",
    )
    field_order = ("name", "title", "lease", "lease_unit", "max_events", "renewal", "max_age", "max_age_unit", "ack")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        number, unit = in_units(config().lease_s_default)
        kwargs.setdefault("initial", {"lease": number, "lease_unit": unit, "max_age_unit": "days"})
        super().__init__(*args, **kwargs)
        self.fields[
            "lease"
        ].help_text = f"It is deleted with its history and subscriptions when this has passed, unless used or renewed. At most {duration(config().lease_s_max)}."

    def wanted(self) -> dict[str, Any]:
        """The arguments of `rendezvous_point_create` for what was typed."""
        typed = self.cleaned_data
        return {
            "name": typed["name"] or None,
            "title": typed["title"],
            "lease_s": self.seconds("lease"),
            "history": {"max_events": typed["max_events"], "max_age_s": self.seconds("max_age")},
            "ack": typed["ack"],
            "renew_on_use": typed["renewal"] != "request",
        }
