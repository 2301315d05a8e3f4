-- Schedules: what each slot of a cadence enqueues. Times are timestamptz, durations nanoseconds, as everywhere. every is
-- 0 where cron is set. due_at is when a sweep has to look: at the next slot, or later if that was put off.
create table schedules (
    key          text        collate "C" not null,
    owner        text        collate "C" not null,
    cron         text        not null,
    zone         text        not null,
    every        bigint      not null,
    misfire      text        not null,
    catch_up     integer     not null,
    overlap      text        not null,
    name         text        collate "C" not null,
    queue        text        collate "C" not null,
    priority     smallint    not null,
    max_attempts integer     not null,
    max_stalls   integer     not null,
    timeout      bigint      not null,
    backoff      text,
    payload      bytea,
    metadata     jsonb,
    keep         jsonb,
    next_at      timestamptz not null,
    last_slot    timestamptz,
    last_id      text        collate "C",
    last_error   text,
    retry_at     timestamptz,
    failures     integer     not null default 0,
    due_at       timestamptz not null generated always as (greatest(next_at, retry_at)) stored,
    primary key (key)
);
create index schedules_due on schedules (due_at);
