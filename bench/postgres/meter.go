package postgres

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// meter reads what was used so far by this process and its children, and by the whole server.
type meter struct {
	conn   *pgx.Conn
	server int // process id of the server's first process
}

// openMeter needs a server on this machine.
func openMeter(ctx context.Context, dsn string) (*meter, error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	m := &meter{conn: conn}
	var backend int
	if err := conn.QueryRow(ctx, "select pg_backend_pid()").Scan(&backend); err != nil {
		return nil, err
	}
	p, err := readProcess(backend)
	m.server = p.parent
	return m, err
}

// used is the state of the counters.
type used struct {
	at             time.Time
	client, server time.Duration
	wal            int64
}

func (m *meter) read(ctx context.Context) (u used, err error) {
	if err := m.conn.QueryRow(ctx, "select pg_current_wal_insert_lsn() - '0/0'").Scan(&u.wal); err != nil {
		return u, err
	}
	if u.server, err = family(m.server); err != nil {
		return u, err
	}
	// Children count once they have ended: contenders may work in other processes, and wait for them.
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var r syscall.Rusage
		if err := syscall.Getrusage(who, &r); err != nil {
			return u, err
		}
		u.client += time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	u.at = time.Now()
	return u, nil
}

// phase is what a phase took, per job.
type phase struct {
	Jobs           int
	Rate           float64 // jobs/s
	Client, Server float64 // µs of CPU
	WAL            float64 // bytes
}

func (p phase) cpu() float64 { return p.Client + p.Server }

// since is what n jobs took since an earlier reading.
func (m *meter) since(ctx context.Context, from used, n int) (phase, error) {
	now, err := m.read(ctx)
	per := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(n) }
	return phase{
		Jobs: n, Rate: float64(n) / now.at.Sub(from.at).Seconds(),
		Client: per(now.client - from.client), Server: per(now.server - from.server),
		WAL: float64(now.wal-from.wal) / float64(n),
	}, err
}

// process is one line of the system's table.
type process struct {
	parent   int
	own      time.Duration // it used
	children time.Duration // those of its children used that have ended
}

// tick is the unit of that table. It is 100 to the second on every Linux that Go runs on.
const tick = 10 * time.Millisecond

func readProcess(pid int) (process, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return process{}, err
	}
	// The name is in parentheses and may contain anything.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 15 {
		return process{}, fmt.Errorf("/proc/%d/stat: %q", pid, text)
	}
	number := func(i int) time.Duration {
		n, convErr := strconv.Atoi(fields[i])
		if err == nil {
			err = convErr
		}
		return time.Duration(n)
	}
	p := process{int(number(1)), (number(11) + number(12)) * tick, (number(13) + number(14)) * tick}
	return p, err
}

// family is what a process and all its children have used, ended or not.
func family(pid int) (time.Duration, error) {
	first, err := readProcess(pid)
	if err != nil {
		return 0, err
	}
	all, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	sum := first.own + first.children
	for _, entry := range all {
		if id, err := strconv.Atoi(entry.Name()); err == nil {
			if p, err := readProcess(id); err == nil && p.parent == pid { // others may end meanwhile
				sum += p.own + p.children
			}
		}
	}
	return sum, nil
}
