package journal_test

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/stintmq/stint/core"
	memstore "github.com/stintmq/stint/drivers/memory"
	"github.com/stintmq/stint/journal"
)

type account struct{ Balance int }

type money struct{ Cents int }

var (
	accounts  = journal.NewEntity[account]("account")
	deposited = journal.Type(accounts, "deposited", func(a *account, e journal.Event[money]) error {
		a.Balance += e.Payload.Cents
		return nil
	})
)

// An entity's events are recorded, and an effect reacts to them.
func Example() {
	ctx := context.Background()
	j, err := journal.New(memstore.New(memstore.Options{}).Journal(), journal.Options{})
	if err != nil {
		panic(err)
	}
	err = journal.On(j, "thank", deposited, func(_ context.Context, e journal.Event[money], call journal.Call[*memstore.Transaction]) error {
		fmt.Println("thanks for", e.Payload.Cents, "as job", call.JobID)
		return nil
	})
	if err != nil {
		panic(err)
	}
	for range 2 {
		s, err := journal.Do(ctx, j, accounts, "ada", func(_ context.Context, _ *memstore.Transaction, s journal.State[account]) ([]journal.Draft, error) {
			return []journal.Draft{deposited.New(money{100 + s.Value.Balance})}, nil
		})
		fmt.Println("version", s.Version, "balance", s.Value.Balance, err)
	}
	w, err := j.Worker(journal.WorkerOptions{})
	if err != nil {
		panic(err)
	}
	effects, _, err := w.Drain(ctx, core.DrainOptions{})
	fmt.Println(effects, err)
	// Output:
	// version 1 balance 100 <nil>
	// version 2 balance 300 <nil>
	// thanks for 100 as job journal/thank:1
	// thanks for 200 as job journal/thank:2
	// 2 <nil>
}

// shredder encrypts payloads with a key per entity. Where the key is gone nobody can read them, backups included. In
// earnest the keys are a table of their own, which is not backed up with the events.
type shredder struct {
	mu   sync.Mutex
	keys map[journal.EntityKey]cipher.AEAD
}

func (s *shredder) Encode(key journal.EntityKey, payload any) ([]byte, error) {
	plain, err := json.Marshal(payload)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	aead := s.keys[key]
	if aead == nil {
		secret := make([]byte, 32)
		_, _ = rand.Read(secret) // never fails
		block, err := aes.NewCipher(secret)
		if err != nil {
			return nil, err
		}
		if aead, err = cipher.NewGCMWithRandomNonce(block); err != nil {
			return nil, err
		}
		s.keys[key] = aead
	}
	return json.Marshal(aead.Seal(nil, nil, plain, []byte(key.String()))) // a base64 string is JSON
}

func (s *shredder) Decode(key journal.EntityKey, data []byte, payload any) error {
	s.mu.Lock()
	aead := s.keys[key]
	s.mu.Unlock()
	if aead == nil {
		return journal.ErrErased
	}
	var sealed []byte
	if err := json.Unmarshal(data, &sealed); err != nil {
		return err
	}
	plain, err := aead.Open(nil, nil, sealed, []byte(key.String()))
	if err != nil {
		return errors.New("does not fit its key")
	}
	return json.Unmarshal(plain, payload)
}

type person struct{ Name string }

// A subject is erased by the loss of its key: its events stay, and say so.
func ExampleCodec() {
	keys := &shredder{keys: map[journal.EntityKey]cipher.AEAD{}}
	people := journal.NewEntity[person]("person")
	named := journal.Type(people, "named", func(p *person, e journal.Event[person]) error {
		p.Name = e.Payload.Name
		if e.Erased {
			p.Name = "(erased)"
		}
		return nil
	}, journal.WithCodec(keys))

	ctx := context.Background()
	j, err := journal.New(memstore.New(memstore.Options{}).Journal(), journal.Options{})
	if err != nil {
		panic(err)
	}
	show := func(drafts ...journal.Draft) {
		s, err := journal.Do(ctx, j, people, "1", func(context.Context, *memstore.Transaction, journal.State[person]) ([]journal.Draft, error) {
			return drafts, nil
		})
		fmt.Println(s.Version, s.Value.Name, err)
	}
	show(named.New(person{"Ada"}))
	delete(keys.keys, people.Key("1"))
	show()
	// Output:
	// 1 Ada <nil>
	// 1 (erased) <nil>
}
