-- The schema of stint's SQLite store. Times are microseconds since 1970, durations nanoseconds.
-- A job is in stint_jobs from its insert until it is removed, and in exactly one of stint_work and stint_finished.

-- One row: the counter that numbers jobs, places and wakes. Later numbers are larger, in every process.
create table stint_counter (
    one  integer primary key check (one = 1),
    tick integer not null
) strict;
insert into stint_counter values (1, 0);

-- A lane is a (queue, name) pair. Claims ask lane by lane, so what they don't ask for costs them nothing; and
-- the totals of finished jobs are kept here, where ten million of them cost as little to count as ten.
create table stint_lanes (
    lane      integer primary key,
    queue     text    not null,
    name      text    not null,
    completed integer not null default 0,
    failed    integer not null default 0,
    cancelled integer not null default 0,
    unique (queue, name)
) strict;

-- What was asked for. Never updated. id is null where the store gave one: it is '#' and seq.
create table stint_jobs (
    seq            integer primary key,
    id             text unique,
    lane           integer not null,
    priority       integer not null,
    payload        blob,
    metadata       text,
    max_attempts   integer not null,
    max_stalls     integer not null,
    timeout        integer not null,
    backoff_kind   text    not null,
    backoff_base   integer not null,
    backoff_max    integer not null,
    backoff_factor real    not null,
    backoff_exact  integer not null,
    keep           text,
    trace          text,
    enqueued_at    integer not null
) strict;
create index stint_jobs_enqueued on stint_jobs (enqueued_at);

-- Where a pending job stands. state: 1 waiting, 2 delayed, 3 active. rank is the negated priority, so that all
-- of an order ascends. token to cancel mean something while the job is active.
create table stint_work (
    seq        integer primary key references stint_jobs (seq) on delete cascade,
    lane       integer not null,
    rank       integer not null,
    state      integer not null check (state in (1, 2, 3)),
    place      integer not null,
    run_at     integer not null,
    attempts   integer not null default 0,
    stalls     integer not null default 0,
    snoozes    integer not null default 0,
    runs       integer not null default 0,
    fence      integer not null default 0,
    token      text,
    until      integer,
    suspect_at integer,
    claimed_at integer,
    worker     text,
    cancel     integer not null default 0
) strict;
-- Jobs that stalled before stand apart: a claim takes one of them at most, and must not wade through the rest.
create index stint_work_waiting on stint_work (lane, stalls > 0, rank, place) where state = 1;
create index stint_work_delayed on stint_work (lane, run_at) where state = 2;
-- The leases. Statements name this index (indexed by), so that they never read more than what is in flight,
-- whatever statistics somebody's ANALYZE left of a day when the table was small.
create index stint_work_active on stint_work (seq) where state = 3;

-- What became of a job, which is its last ledger entry too. state: 5 completed, 6 failed, 7 cancelled.
-- asked and token answer an ack that is repeated.
create table stint_finished (
    seq         integer primary key references stint_jobs (seq) on delete cascade,
    lane        integer not null,
    state       integer not null check (state in (5, 6, 7)),
    run_at      integer not null,
    attempts    integer not null,
    stalls      integer not null,
    snoozes     integer not null,
    runs        integer not null,
    fence       integer not null,
    outcome     text    not null,
    asked       text,
    token       text,
    started_at  integer,
    finished_at integer not null,
    worker      text,
    result      blob,
    failure     text
) strict;
create index stint_finished_lane on stint_finished (lane, state, finished_at);

-- The ledger entries that did not end their job, and those that a Retry revived it from.
create table stint_runs (
    seq         integer not null references stint_jobs (seq) on delete cascade,
    number      integer not null,
    outcome     text    not null,
    asked       text,
    answered    integer not null,
    token       text,
    started_at  integer,
    finished_at integer not null,
    worker      text,
    failure     text,
    primary key (seq, number)
) strict, without rowid;

-- Queues that are paused.
create table stint_paused (
    queue text primary key
) strict, without rowid;

-- The tick at which a queue last had news; queue '' is for leases that were asked to cancel.
create table stint_wake (
    queue text primary key,
    at    integer not null
) strict, without rowid;
create index stint_wake_at on stint_wake (at);
