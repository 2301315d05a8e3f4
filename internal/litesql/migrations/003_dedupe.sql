-- The key that a job was enqueued with, and who took a key last. until is the end of the window, null for none. Neither
-- acks nor sweeps nor claims write here: whether an entry is alive is found out when an enqueue looks. id is the job's,
-- null where the store gave it: the entry may outlive the job.
alter table stint_jobs add column dedupe_key text;
create table stint_dedupe (
    name  text    not null,
    key   text    not null,
    seq   integer not null,
    until integer,
    id    text,
    primary key (name, key)
) strict, without rowid;

drop view stint_job_status;
-- One row per job, wherever it stands, for operators and an application's own queries; the store does not read it. A
-- delayed job that is due reads as waiting. Times are text, in UTC. Each state is a range of its own, so that a query
-- which names states reads no more than these.
create view stint_job_status as
with stands as (
    select seq, lane, 'waiting' as state, run_at, attempts, stalls, snoozes, runs, null as claimed_at, null as until,
        null as worker, 0 as cancel, null as finished_at, null as failure from stint_work where state = 1
    union all select seq, lane, 'waiting', run_at, attempts, stalls, snoozes, runs, null, null, null, 0, null, null
        from stint_work where state = 2 and run_at <= cast(unixepoch('subsec') * 1000000 as integer)
    union all select seq, lane, 'delayed', run_at, attempts, stalls, snoozes, runs, null, null, null, 0, null, null
        from stint_work where state = 2 and run_at > cast(unixepoch('subsec') * 1000000 as integer)
    union all select seq, lane, 'active', run_at, attempts, stalls, snoozes, runs, claimed_at, until, worker, cancel, null, null
        from stint_work where state = 3
    union all select seq, lane, 'completed', run_at, attempts, stalls, snoozes, runs, started_at, null, worker, 0, finished_at, failure
        from stint_finished where state = 5
    union all select seq, lane, 'failed', run_at, attempts, stalls, snoozes, runs, started_at, null, worker, 0, finished_at, failure
        from stint_finished where state = 6
    union all select seq, lane, 'cancelled', run_at, attempts, stalls, snoozes, runs, started_at, null, worker, 0, finished_at, failure
        from stint_finished where state = 7
)
select coalesce(j.id, '#' || j.seq) as id, l.queue, l.name, s.state, j.priority,
    strftime('%Y-%m-%dT%H:%M:%S', s.run_at / 1000000, 'unixepoch') || printf('.%06dZ', s.run_at % 1000000) as run_at,
    s.attempts, j.max_attempts, s.stalls, s.snoozes, s.runs,
    strftime('%Y-%m-%dT%H:%M:%S', j.enqueued_at / 1000000, 'unixepoch') || printf('.%06dZ', j.enqueued_at % 1000000) as enqueued_at,
    strftime('%Y-%m-%dT%H:%M:%S', s.claimed_at / 1000000, 'unixepoch') || printf('.%06dZ', s.claimed_at % 1000000) as claimed_at,
    strftime('%Y-%m-%dT%H:%M:%S', s.until / 1000000, 'unixepoch') || printf('.%06dZ', s.until % 1000000) as lease_until,
    s.worker, s.cancel as cancel_requested,
    strftime('%Y-%m-%dT%H:%M:%S', s.finished_at / 1000000, 'unixepoch') || printf('.%06dZ', s.finished_at % 1000000) as finished_at,
    s.failure, j.metadata, j.dedupe_key
from stands s join stint_lanes l on l.lane = s.lane join stint_jobs j on j.seq = s.seq;
