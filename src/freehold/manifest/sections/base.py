"""What all sections share."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Frozen, and refuses keys it does not know and values of another type."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, hide_input_in_errors=True)
