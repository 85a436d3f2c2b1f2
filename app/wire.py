"""Shapes that go out, made of what the service already holds."""

from typing import Any, TypeVar

from pydantic import BaseModel

Shape = TypeVar("Shape", bound=BaseModel)

_set = object.__setattr__


def made(shape: type[Shape], **members: Any) -> Shape:
    """A shape with all its members, which are right already; recall makes some twenty of them for an answer.

    It is what pydantic's `model_construct` does where no member has an alias and none is left to its default, in a
    quarter of the time.
    """
    one = shape.__new__(shape)
    _set(one, "__dict__", members)
    _set(one, "__pydantic_fields_set__", set(members))
    _set(one, "__pydantic_extra__", None)
    _set(one, "__pydantic_private__", None)
    return one
