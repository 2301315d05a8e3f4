-- Schedules: what each slot of a cadence enqueues. Times are microseconds, durations nanoseconds, as everywhere. every is
-- 0 where cron is set. due_at is when a sweep has to look: at the next slot, or later if that was put off.
create table stint_schedules (
    key            text primary key,
    owner          text    not null,
    cron           text    not null,
    zone           text    not null,
    every          integer not null,
    misfire        text    not null,
    catch_up       integer not null,
    overlap        text    not null,
    name           text    not null,
    queue          text    not null,
    payload        blob,
    metadata       text,
    priority       integer not null,
    max_attempts   integer not null,
    max_stalls     integer not null,
    timeout        integer not null,
    backoff_kind   text    not null,
    backoff_base   integer not null,
    backoff_max    integer not null,
    backoff_factor real    not null,
    backoff_exact  integer not null,
    keep           text,
    next_at        integer not null,
    last_slot      integer,
    last_id        text,
    last_error     text,
    retry_at       integer,
    failures       integer not null default 0,
    due_at         integer not null generated always as (max(next_at, coalesce(retry_at, next_at))) stored
) strict;
create index stint_schedules_due on stint_schedules (due_at);
