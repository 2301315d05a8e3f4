-- The key that a job was enqueued with.
alter table jobs add column dedupe_key text collate "C";

-- Who took a key last. until is the end of the window, null for none. Neither acks nor sweeps nor claims write here, or
-- wait for whoever does: whether an entry is alive is found out when an enqueue looks. Each version of an entry has a turn
-- of its own, so that who looked can act on what was seen; was is the one before. id is the job's, null where the store
-- gave it: the entry may outlive the job.
create table dedupe (
    seq   bigint not null,
    turn  bigint not null,
    was   bigint not null,
    until timestamptz,
    name  text   collate "C" not null,
    key   text   collate "C" not null,
    id    text   collate "C",
    primary key (name, key)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, vacuum_truncate = off);

-- One row per job, wherever it stands, for operators and an application's own queries; the store does not read it. A
-- delayed job that is due reads as waiting. Each state is a range of its own, so that a query which names states, and a
-- queue, reads no more than these.
create or replace view job_status as
select coalesce(j.id, '#' || j.seq) as id, z.queue, z.name, z.state, j.priority, z.run_at, z.attempts, j.max_attempts, z.stalls,
    z.snoozes, z.runs, j.enqueued_at, z.claimed_at, z.lease_until, z.worker, z.cancel_requested, z.finished_at, z.failure,
    j.metadata, j.dedupe_key
from (
    select seq, queue, name, 'waiting' as state, run_at, attempts, stalls, snoozes, runs, null::timestamptz as claimed_at,
        null::timestamptz as lease_until, null::text as worker, false as cancel_requested, null::timestamptz as finished_at,
        null::jsonb as failure from ready
    union all select seq, queue, name, 'waiting', run_at, attempts, stalls, snoozes, runs, null, null, null, false, null, null
        from delayed where run_at <= statement_timestamp()
    union all select seq, queue, name, 'delayed', run_at, attempts, stalls, snoozes, runs, null, null, null, false, null, null
        from delayed where run_at > statement_timestamp()
    union all select seq, queue, name, 'active', run_at, attempts, stalls, snoozes, runs, claimed_at, until, worker, cancel, null,
        null from leases
    union all select seq, queue, name, 'completed', run_at, attempts, stalls, snoozes, runs, started_at, null, worker, false,
        finished_at, failure from finished where state = 5
    union all select seq, queue, name, 'failed', run_at, attempts, stalls, snoozes, runs, started_at, null, worker, false,
        finished_at, failure from finished where state = 6
    union all select seq, queue, name, 'cancelled', run_at, attempts, stalls, snoozes, runs, started_at, null, worker, false,
        finished_at, failure from finished where state = 7
) z join jobs j on j.seq = z.seq;
