package pgtest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"": "",
		"postgres://ann:hunter2@db:5432/jobs?sslmode=disable": "postgres://ann:xxxxx@db:5432/jobs?sslmode=disable",
		"postgresql://ann@db/jobs":                            "postgresql://ann@db/jobs",
		"postgres://db:5432/jobs":                             "postgres://db:5432/jobs",
		"postgres://:hunter2@/jobs":                           "postgres://:xxxxx@/jobs",
		"postgres:///jobs?user=ann&password=hunter2&host=db":  "postgres:///jobs?user=ann&password=xxxxx&host=db",
		"postgres:///jobs?pass%77ord=hunter2":                 "postgres:///jobs?pass%77ord=xxxxx",
		"postgres:///jobs?%zz=hunter2":                        "postgres:///jobs?%zz=xxxxx",
		"postgres:///jobs?sslpassword=hunter2&sslkey=/k":      "postgres:///jobs?sslpassword=xxxxx&sslkey=/k",
		// Not escaped, as people write them.
		"postgres://ann:hun/ter@2@db/jobs":  "postgres://ann:xxxxx@db/jobs",
		"postgres://ann:hunter?2#3@db/jobs": "postgres://ann:xxxxx@db/jobs",
		"postgres://ann:12/hunter@db/jobs":  "postgres://ann:xxxxx@db/jobs",

		"host=db password=hunter2 user=ann":               "host=db password=xxxxx user=ann",
		`host = db  PASSWORD = 'hunter \' 2' user='an n'`: "host=db PASSWORD=xxxxx user='an n'",
		`password=hun\ ter2 user=ann`:                     "password=xxxxx user=ann",
		"password='hunter2 user=ann":                      "password=xxxxx",
		"password=hunter 2 user=ann":                      "password=xxxxx xxxxx",
		"password= user=ann":                              "password=xxxxx",

		"mysql://ann:hunter2@db/jobs": "xxxxx",
		"hunter2":                     "xxxxx",
	} {
		assert.Equal(t, want, Redact(in), in)
		assert.Equal(t, want, Redact(want), "what is redacted stays as it is")
	}
}

func FuzzRedactHidesThePassword(f *testing.F) {
	f.Add("ann", "hunter2", "db")
	f.Add("", "p@s?s#w:o/r&d=", "db?application_name=a@b")
	f.Fuzz(func(t *testing.T, user, password, host string) {
		const mark = "QqPpZz"
		if strings.ContainsAny(user+host, ":@") {
			return // the password would not be where this puts it
		}
		assert.NotContains(t, Redact("postgres://"+user+":"+password+mark+"@"+host), mark)
	})
}
