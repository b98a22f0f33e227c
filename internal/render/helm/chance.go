package helm

import (
	"fmt"
	"reflect"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
)

// chance watches the functions whose result is not determined by their
// arguments. When a run has called one, the chart is rendered a second time in
// which each of them answers differently: what then differs is random.
type chance struct {
	called bool
	again  bool
	first  []string // what the first run got, in order
	next   int
}

// second returns the chance of the run that is compared with the one that c watched.
func (c *chance) second() *chance { return &chance{again: true, first: c.first} }

// tries bounds how often a function is called for another result. A random
// digit is the same this often once in 10^64 times.
const tries = 64

// isChance names the functions. Those of the clock are in clockFunctions.
func isChance(name string) bool {
	switch name {
	case "randAlphaNum", "randAlpha", "randAscii", "randNumeric", "randBytes", "randInt", "shuffle", "uuidv4",
		"genPrivateKey", "genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey",
		"htpasswd", "bcrypt", "encryptAES":
		return true
	}
	return false
}

// isCheap reports whether a function can be called again at no cost; the others
// never answer the same twice.
func isCheap(name string) bool {
	switch name {
	case "randAlphaNum", "randAlpha", "randAscii", "randNumeric", "randBytes", "randInt", "shuffle":
		return true
	}
	return false
}

// noted passes a result on. In a second run it is another one than in the first.
func (c *chance) noted(name string, res []reflect.Value, call func() []reflect.Value) []reflect.Value {
	c.called = true
	if !isCheap(name) {
		return res
	}
	if !c.again {
		c.first = append(c.first, fmt.Sprint(res[0]))
		return res
	}
	if c.next < len(c.first) {
		for n := 0; n < tries && fmt.Sprint(res[0]) == c.first[c.next]; n++ {
			res = call()
		}
		c.next++
	}
	return res
}

// now is the time that templates see. A second run is at another year, month,
// day, hour, minute and second.
func (c *chance) now() time.Time {
	c.called = true
	t := time.Now() //nolint:forbidigo // it is what a template means by now
	if c.again {
		t = t.AddDate(1, 1, 1).Add(time.Hour + time.Minute + time.Second)
	}
	return t
}

// clockFunctions are the functions that read the clock, at least when they are
// not given a time.
func (e *engine) clockFunctions() template.FuncMap {
	now := func() time.Time { return e.run.chance.now() }
	given := func(v any) any {
		switch v.(type) {
		case time.Time, *time.Time, int64, int, int32:
			return v
		}
		return now()
	}
	s := sprig.GenericFuncMap()
	inZone, _ := s["dateInZone"].(func(string, any, string) string)
	round, _ := s["durationRound"].(func(any) string)
	dateInZone := func(layout string, t any, zone string) string { return inZone(layout, given(t), zone) }
	return template.FuncMap{
		"now":            now,
		"date":           func(layout string, t any) string { return dateInZone(layout, t, "Local") },
		"dateInZone":     dateInZone,
		"date_in_zone":   dateInZone,
		"htmlDate":       func(t any) string { return dateInZone("2006-01-02", t, "Local") },
		"htmlDateInZone": func(t any, zone string) string { return dateInZone("2006-01-02", t, zone) },
		"ago": func(v any) string {
			t := now()
			switch v := v.(type) {
			case time.Time:
				t = v
			case int64:
				t = time.Unix(v, 0)
			case int:
				t = time.Unix(int64(v), 0)
			}
			return now().Sub(t).Round(time.Second).String()
		},
		"durationRound": func(v any) string {
			if t, ok := v.(time.Time); ok {
				v = int64(now().Sub(t))
			}
			return round(v)
		},
	}
}
