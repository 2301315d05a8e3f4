-- The schema of stint's Postgres store, in three zones: what was asked, where it stands, what happened. Names are
-- not qualified: run it with the search_path set to the schema that is to hold it.
--
-- A job is in jobs from its insert until it is removed, and in exactly one of ready, delayed, leases and finished.
-- Moving it is one statement: delete here, insert there. Times are timestamptz, durations nanoseconds.

-- Jobs and places are numbered from here: a new job's number is its first place.
create sequence numbers as bigint;

-- What was asked for. Never updated. id is null where the store gave one: it is '#' and seq. run_at is the time that
-- was asked for; where the job stands says the one that counts.
create table jobs (
    seq          bigint      not null,
    enqueued_at  timestamptz not null,
    run_at       timestamptz not null,
    timeout      bigint,
    max_attempts integer     not null,
    max_stalls   integer     not null,
    priority     smallint    not null,
    id           text        collate "C",
    queue        text        collate "C" not null,
    name         text        collate "C" not null,
    backoff      text,
    payload      bytea,
    metadata     jsonb,
    keep         jsonb,
    trace        jsonb,
    primary key (seq)
) with (autovacuum_vacuum_scale_factor = 0.05, vacuum_truncate = off);
create unique index jobs_id on jobs (id) where id is not null;

-- Where it stands: waiting. Highest priority first, then the smallest place. bytes is the payload's size.
create table ready (
    seq      bigint      not null,
    place    bigint      not null,
    run_at   timestamptz not null,
    fence    bigint      not null,
    bytes    integer     not null,
    attempts integer     not null,
    stalls   integer     not null,
    snoozes  integer     not null,
    runs     integer     not null,
    priority smallint    not null,
    queue    text        collate "C" not null,
    name     text        collate "C" not null,
    primary key (seq)
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
create index ready_line on ready (queue, priority, place);
-- Jobs that stalled before: a claim takes one of them at most.
create index ready_stalled on ready (queue, priority desc, place) where stalls > 0;

-- Where it stands: delayed until run_at.
create table delayed (
    seq      bigint      not null,
    run_at   timestamptz not null,
    fence    bigint      not null,
    bytes    integer     not null,
    attempts integer     not null,
    stalls   integer     not null,
    snoozes  integer     not null,
    runs     integer     not null,
    priority smallint    not null,
    queue    text        collate "C" not null,
    name     text        collate "C" not null,
    primary key (seq)
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
create index delayed_due on delayed (queue, name, run_at, seq);

-- Where it stands: leased to a worker. Small: what is in flight. until is not indexed, so that heartbeats stay
-- within their page; sweeps read the whole table.
create table leases (
    seq        bigint      not null,
    place      bigint      not null,
    run_at     timestamptz not null,
    fence      bigint      not null,
    until      timestamptz not null,
    claimed_at timestamptz not null,
    suspect_at timestamptz,
    token      uuid        not null,
    bytes      integer     not null,
    attempts   integer     not null,
    stalls     integer     not null,
    snoozes    integer     not null,
    runs       integer     not null,
    priority   smallint    not null,
    cancel     boolean     not null default false,
    queue      text        collate "C" not null,
    name       text        collate "C" not null,
    worker     text        not null,
    primary key (seq)
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

-- What happened: the end of a job, which is its last ledger entry too. state: 5 completed, 6 failed, 7 cancelled.
-- asked and token answer an ack that is repeated.
create table finished (
    seq         bigint      not null,
    finished_at timestamptz not null,
    run_at      timestamptz not null,
    started_at  timestamptz,
    fence       bigint      not null,
    token       uuid,
    attempts    integer     not null,
    stalls      integer     not null,
    snoozes     integer     not null,
    runs        integer     not null,
    state       smallint    not null check (state in (5, 6, 7)),
    queue       text        collate "C" not null,
    name        text        collate "C" not null,
    outcome     text        not null,
    asked       text,
    worker      text,
    result      bytea,
    failure     jsonb,
    primary key (seq)
) with (autovacuum_vacuum_scale_factor = 0.05, vacuum_truncate = off);
create index finished_history on finished (queue, name, state, finished_at, seq);

-- What happened: the ledger entries that did not end their job, and those that a Retry revived it from.
create table runs (
    seq         bigint      not null,
    finished_at timestamptz not null,
    started_at  timestamptz,
    token       uuid,
    number      integer     not null,
    answered    smallint    not null,
    outcome     text        not null,
    asked       text,
    worker      text,
    failure     jsonb,
    primary key (seq, number)
) with (autovacuum_vacuum_scale_factor = 0.05, vacuum_truncate = off);

-- How many jobs finished, per (queue, name): the sum of rows that only grow in number. Adding one locks nothing,
-- so no ack waits for another, nor for a transaction of the application's. Sweeps fold them.
create table tallies (
    queue     text   collate "C" not null,
    name      text   collate "C" not null,
    completed bigint not null,
    failed    bigint not null,
    cancelled bigint not null
);

-- The priorities in use per queue. They stay.
create table lanes (
    queue    text     collate "C" not null,
    priority smallint not null,
    primary key (queue, priority)
);

-- When a claim last looked without marks, per queue and set of names.
create table sweeps (
    queue text        collate "C" not null,
    names bigint      not null,
    at    timestamptz not null,
    primary key (queue, names)
);

-- The queues that are paused.
create table paused (
    queue text collate "C" primary key
);
