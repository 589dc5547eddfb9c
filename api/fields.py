"""What is wrong with the fields of a request: pydantic's findings in our words, each with its path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, Field

from api.words import did_you_mean


class FieldError(BaseModel):
    """One thing that is wrong with a request."""

    field: str = Field(description="Path of the field, with dots; empty for the body as a whole.")
    message: str = Field(description="What is wrong.")
    fix: str | None = Field(default=None, description="What to do about it, where that is known.")

    def __str__(self) -> str:
        said = f"{self.field}: {self.message}" if self.field else self.message
        return f"{said} ({self.fix})" if self.fix else said


def field_errors(found: Iterable[Any], model: Any = None) -> list[FieldError]:
    """Say pydantic's findings; ``model`` is the body's, for the names that would have been right.

    What was sent is not repeated: it may be a secret.
    """
    return [_field_error(one, model) for one in found]


def _field_error(found: dict[str, Any], model: Any) -> FieldError:
    source, *steps = found["loc"] or ("",)
    if source not in ("body", "query", "path", "header", "cookie"):
        source, steps = "body", list(found["loc"])
    kind, context = found["type"], found.get("ctx", {})
    if kind == "json_invalid":
        where = f" at character {steps[0]}" if steps else ""
        return FieldError(field="", message=f"the body is not JSON: {context.get('error', '')}{where}")
    path, known = _path(steps, model if source == "body" else None)
    if kind == "extra_forbidden":
        fix = did_you_mean(str(steps[-1]), known) if known else "leave it out"
        return FieldError(field=path, message="there is no such field", fix=fix)
    if kind == "missing":
        message = "it is missing" if path else "the body is missing"
        return FieldError(field=path, message=message, fix="give it")
    if not path and kind in ("model_attributes_type", "model_type", "dict_type"):
        return FieldError(
            field="",
            message="the body must be a JSON object",
            fix="send one, with Content-Type: application/json",
        )
    message = found["msg"].removeprefix("Value error, ")
    if message.startswith("Input should be "):
        message = "it must be " + message.removeprefix("Input should be ")
    return FieldError(field=path, message=message)


def _path(steps: Sequence[Any], model: Any) -> tuple[str, list[str]]:
    """The path as the caller wrote it, and the names of the fields that there are at its end's place.

    pydantic puts the tags of unions between the names; the caller never wrote these.
    """
    here = _models(model)
    path: list[str] = []
    for place, step in enumerate(steps):
        fields = {name: field for one in here for name, field in one.model_fields.items()}
        last = place == len(steps) - 1
        if isinstance(step, int) or step in fields or not here:
            path.append(str(step))
            if step in fields:
                here = _models(fields[step].annotation)
        elif tagged := _tagged(here, step):
            here = tagged
        elif last:
            path.append(str(step))
        if last:
            return ".".join(path), list(fields)
    return "", []


def _models(annotation: Any) -> list[type[BaseModel]]:
    """All models in an annotation: in lists, unions and so on."""
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return [annotation] if issubclass(annotation, BaseModel) else []
    if get_origin(annotation) is Literal:
        return []
    return [model for part in get_args(annotation) for model in _models(part)]


def _tagged(models: list[type[BaseModel]], tag: str) -> list[type[BaseModel]]:
    """The members of a union that this tag picks: by a literal of theirs, or by their name."""
    return [
        model
        for model in models
        if model.__name__ == tag
        or any(tag in get_args(field.annotation) for field in model.model_fields.values())
    ]
