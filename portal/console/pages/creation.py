"""Creating an RP from a form, on each page that has one."""

from __future__ import annotations

from django.http import HttpRequest

from eventing.core.errors import ApplicationError, Forbidden
from eventing.rps.models import RendezvousPoint
from eventing.rps.services.rendezvous_points import rendezvous_point_create
from portal.auditing import refusal_of_form
from portal.console.pages.access import current_user, principal_of
from portal.console.pages.forms import RendezvousPointForm


def create_from(request: HttpRequest, form: RendezvousPointForm) -> RendezvousPoint | None:
    """Create the RP that the form describes; None when there are errors, which the form then holds. Raises
    Forbidden."""
    if not form.is_valid():
        return None
    try:
        return rendezvous_point_create(principal=principal_of(current_user(request)), **form.wanted())
    except Forbidden:
        raise  # no other words in the form would help
    except ApplicationError as error:
        form.refuse(error)
        refusal_of_form(request, error)
        return None
