package pgsql

import (
	"context"
	"slices"
	"time"

	"github.com/stintmq/stint/internal/keyplan"
)

// A call that holds one key while it waits for another would wait in a circle with one that took them the other way
// round: keys that are new come after those that are replaced, and what is planned again after both. So before a call acts
// on several it locks all of them, in their order, and what it held before it gives back. Keys that nobody took are taken
// for no job, which nobody else can see, and which is a dead entry where it is of no use after all.
const sqlLockKeys = `insert into {}.dedupe as e (name, key, seq, turn, was)
	select name, key, 0, nextval({numbers}), 0 from unnest((select $1::text[]), (select $2::text[])) as u (name, key)
	where $3::text is null or (select set_config('lock_timeout', $3::text, true)) is not null
	order by name collate "C", key collate "C"
	on conflict (name, key) do update set turn = e.turn where false`

// keyOrder is the keys that a call has locked, of which there are none, nor any need, where it acts on a single one.
type keyOrder struct {
	e      *enqueueing
	saved  bool // there is a savepoint to go back to
	acted  bool // since that it may hold something
	locked map[keyplan.Key]bool
}

// begin readies a call that may have to go back.
func (o *keyOrder) begin(ctx context.Context, items int) error {
	if !o.e.s.whole || o.e.apart || items == 1 { // who is apart waits too short to wait in a circle
		return nil
	}
	o.saved = true
	_, err := o.e.s.x.Exec(ctx, "savepoint stint_order")
	return err
}

func (o *keyOrder) end(ctx context.Context) error {
	if !o.saved {
		return nil
	}
	_, err := o.e.s.x.Exec(ctx, "release savepoint stint_order")
	return err
}

// ready reports whether a plan for the first of the items that are left can be carried out. Else all that the call did is
// undone, and the keys that it needs are locked: it has to look again.
func (o *keyOrder) ready(ctx context.Context, plan *keyplan.Plan, left []int) (bool, error) {
	var keys []keyplan.Key
	for i := range plan.Touches {
		keys = append(keys, plan.Touches[i].Key)
	}
	for i := range plan.Inserts {
		if k := plan.Inserts[i].Key; k != (keyplan.Key{}) {
			keys = append(keys, k)
		}
	}
	missing := slices.ContainsFunc(keys, func(k keyplan.Key) bool { return !o.locked[k] })
	if !o.saved || !missing || len(keys) == 1 && !o.acted {
		o.acted = o.acted || len(keys) > 0
		return true, nil
	}
	if plan.Planned < len(left) { // what the others need it will need
		keys = append(keys, keysOf(o.e.reqs, left)...)
	}
	if _, err := o.e.s.x.Exec(ctx, "rollback to savepoint stint_order"); err != nil {
		return false, err
	}
	if o.locked == nil {
		o.locked = make(map[keyplan.Key]bool)
	}
	for _, k := range keys {
		o.locked[k] = true
	}
	names, texts := make([]string, 0, len(o.locked)), make([]string, 0, len(o.locked))
	for k := range o.locked {
		names, texts = append(names, k.Name), append(texts, k.Key)
	}
	o.acted = true
	_, err := o.e.s.x.Exec(ctx, sqlLockKeys, names, texts, o.e.waiting())
	return false, err
}

// keyed is a run of a call in which items have dedupe keys: it looks at ids and keys, plans, and acts on what it saw.
// Items for which that was not so any more are planned again. Most keys are new: where no item depends on another the
// first plan is that all are, without a look.
func (e *enqueueing) keyed(ctx context.Context, all []int) error {
	order := keyOrder{e: e}
	if err := order.begin(ctx, len(all)); err != nil {
		return err
	}
	left := all
	if !e.apart && e.independent(left) {
		var err error
		if left, err = e.round(ctx, left, keyplan.Make(e.reqs, left, time.Time{}, nil, nil)); err != nil {
			return err
		}
		order.acted = true // what was refused may be locked all the same
	}
	var window keyplan.Window
	for try := 0; len(left) > 0; try++ {
		if try == tries {
			return errMoving
		}
		part := window.Of(left)
		entries, now, err := e.s.entries(ctx, keysOf(e.reqs, part))
		if err != nil {
			return err
		}
		names, err := e.names(ctx, part)
		if err != nil {
			return err
		}
		plan := keyplan.Make(e.reqs, part, now, entries, names)
		window.Planned(plan.Planned, len(part))
		ready, err := order.ready(ctx, plan, left)
		if err != nil {
			return err
		}
		if !ready {
			left = all
			continue
		}
		again, err := e.round(ctx, left[:plan.Planned], plan)
		if err != nil {
			return err
		}
		if len(again) == 0 { // others changed nothing in between
			try = -1
		}
		left = append(again, left[plan.Planned:]...)
	}
	return order.end(ctx)
}
