"""All settings with value, unit and origin; docs/settings.md is generated from the same table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import Field, dataclass, fields
from typing import Any
from urllib.parse import urlsplit

from eventing.core.config import SMALL_DEFAULTS, Config

MASK = "********"
_PASSWORD_PARAMETER = re.compile(r"([?&][^=&]*password=)[^&#]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Setting:
    """One row: `value` is masked where it is secret; `origin` is `default`, `profile` where the profile has another default, or
    `environment`."""

    name: str
    value: str
    unit: str
    origin: str
    about: str


def settings_in_use(config: Config, env: Mapping[str, str]) -> list[Setting]:
    """Return every setting in use."""
    return [
        Setting(
            name=_variable(setting),
            value=_shown(getattr(config, setting.name), secret=setting.metadata["secret"]),
            unit=setting.metadata["unit"],
            origin=_origin(setting, config, env),
            about=setting.metadata["about"],
        )
        for setting in fields(config)
    ]


def settings_markdown() -> str:
    """The text of docs/settings.md."""
    lines = [
        "# Settings",
        "",
        "<!-- Made by `manage.py doctor --settings-markdown` from eventing/core/config.py; a test keeps it current. -->",
        "",
        "Every setting is an environment variable. `python manage.py doctor` shows those in use, where each value comes from,",
        "and names that look like a setting but are none. A value that cannot be is refused at start with one sentence.",
        "",
        "| setting | default | unit | range | what it is |",
        "|---|---|---|---|---|",
    ]
    for setting in fields(Config):
        default = _text(setting.default)
        cells = [
            f"`{_variable(setting)}`",
            f"`{default}`" if default else "(empty)",
            setting.metadata["unit"],
            _range(setting.metadata),
        ]
        lines.append("| " + " | ".join([*cells, setting.metadata["about"]]) + " |")
    return "\n".join(lines) + "\n"


def masked_url(url: str) -> str:
    """Return the URL, which may name several servers, without its passwords."""
    try:
        user_and_password, at, _ = urlsplit(url).netloc.rpartition("@")
    except ValueError:
        return MASK
    url = _PASSWORD_PARAMETER.sub(rf"\1{MASK}", url)
    password = user_and_password.partition(":")[2] if at else ""
    return url.replace(f":{password}@", f":{MASK}@", 1) if password else url


def _variable(setting: Field[Any]) -> str:
    return f"HERALD_{setting.name.upper()}"


def _origin(setting: Field[Any], config: Config, env: Mapping[str, str]) -> str:
    if env.get(_variable(setting), ""):
        return "environment"
    return "profile" if config.is_small and setting.name in SMALL_DEFAULTS else "default"


def _shown(value: Any, *, secret: bool) -> str:
    text = _text(value)
    if secret and text:
        return masked_url(text) if "://" in text else MASK
    return text


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _range(metadata: Mapping[str, Any]) -> str:
    low, high = metadata["low"], metadata["high"]
    if low is None and high is None:
        return ""
    return f"{low} to {high}" if high is not None else f"from {low}"
