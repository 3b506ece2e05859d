"""What goes wrong, said in one line each."""

from typing import Self


class OngebdError(Exception):
    """A mistake that a user can mend: the message is one line with what, where and how to mend it.

    The command line prints the message alone and exits with status 2.
    """


class SourceError(OngebdError):
    """A source that cannot be opened or has no video to decode."""


class FeatureError(OngebdError):
    """A feature that no decision can be built on: NaN, infinite, or of norm zero."""


class ConfigError(OngebdError, ValueError):
    """A setting outside its range, or an unknown name."""


class LabelError(OngebdError, ValueError):
    """A label or prediction file that cannot be trusted or read."""


class StoreError(OngebdError):
    """A feature store that cannot be read or written, or into which other features would be mixed."""


class MissingExtraError(OngebdError, ImportError):
    """Something was asked for that needs an optional extra which is not installed."""

    @classmethod
    def of(cls, module: str | None, extra: str) -> Self:
        """The error for a module that is not there, with the command that mends it."""
        return cls(f'{module} is not installed: pip install "ongebd[{extra}]"', name=module)
