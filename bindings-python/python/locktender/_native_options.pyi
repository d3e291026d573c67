"""Stub of :mod:`locktender._native`: what users give as times and as options of a lock."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Literal, TypeAlias, TypedDict, type_check_only

from .errors import LockLostError

_Seconds: TypeAlias = float | timedelta
_OnLost: TypeAlias = Literal["cancel", "continue"] | Callable[[LockLostError], object]

@type_check_only
class _LockOptions(TypedDict, total=False):
    """Those of :meth:`Client.lock`."""

    ttl: _Seconds | None
    wait: _Seconds | None
    renew: bool | None
    max_hold: _Seconds | None
    fair: bool | None
    min_hold: _Seconds | None
    grace: _Seconds | None
    category: str | None
    on_lost: _OnLost | None

@type_check_only
class _MultiLockOptions(TypedDict, total=False):
    """Those of :meth:`Client.multi_lock`."""

    ttl: _Seconds | None
    wait: _Seconds | None
    renew: bool | None
    max_hold: _Seconds | None
    grace: _Seconds | None
    category: str | None
    on_lost: _OnLost | None

@type_check_only
class _JobOptions(_LockOptions, total=False):
    """Those of :meth:`Client.job`."""

    max_attempts: int | None
    retry_delay: _Seconds | None
    retention: _Seconds | None

@type_check_only
class _CronJobOptions(_LockOptions, total=False):
    """Those of :meth:`Client.cron_job`."""

    at: datetime | float | None
    every: _Seconds | None
    max_lateness: _Seconds | None
    on_overlap: Literal["skip", "wait"] | None
    max_attempts: int | None
    retry_delay: _Seconds | None
