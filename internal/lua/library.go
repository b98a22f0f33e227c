package lua

import (
	"strconv"
	"strings"
	"time"

	glua "github.com/yuin/gopher-lua"
)

const (
	// guardPrice is that of a guarded call, and maxMatching the steps that a
	// pattern may need at worst.
	guardPrice  = 2000
	maxMatching = 1e8
)

// concatName is the global that the operator .. becomes; no script can write it.
const concatName = "\x00concat"

// libraries opens what a script may use: base, table and the clock of the caller,
// and with open libraries string and math. What reads files, loads code or makes
// much of little is taken out or counted.
func (s *Script) libraries(l *glua.LState, m *meter, now time.Time) error {
	libs := map[string]glua.LGFunction{glua.BaseLibName: glua.OpenBase, glua.TabLibName: glua.OpenTable}
	if s.open {
		libs[glua.StringLibName], libs[glua.MathLibName] = glua.OpenString, glua.OpenMath
	}
	for name, open := range libs {
		l.Push(l.NewFunction(open))
		l.Push(glua.LString(name))
		if err := l.PCall(1, 0, nil); err != nil {
			return s.explain(err)
		}
	}
	for _, name := range []string{"dofile", "loadfile", "load", "loadstring", "require", "module", "collectgarbage", "print", "_printregs", "newproxy", "getfenv", "setfenv"} {
		l.SetGlobal(name, glua.LNil)
	}
	for _, name := range []string{"pcall", "xpcall"} { // what it catches has cost a trace of the stack
		if f, ok := l.GetGlobal(name).(*glua.LFunction); ok {
			l.SetGlobal(name, l.NewFunction(func(l *glua.LState) int { m.charge(l, guardPrice); return f.GFunction(l) }))
		}
	}
	l.SetGlobal(concatName, l.NewFunction(m.concat))
	if t, ok := l.GetGlobal(glua.TabLibName).(*glua.LTable); ok {
		t.RawSetString("concat", l.NewFunction(m.join))
	}
	if t, ok := l.GetGlobal(glua.StringLibName).(*glua.LTable); ok {
		t.RawSetString("rep", l.NewFunction(m.repeat))
		t.RawSetString("dump", glua.LNil)
		for _, name := range []string{"find", "match", "gmatch", "gsub"} {
			if f, ok := t.RawGetString(name).(*glua.LFunction); ok {
				t.RawSetString(name, l.NewFunction(m.matching(f.GFunction)))
			}
		}
		for _, name := range []string{"gsub", "format", "upper", "lower", "reverse", "sub", "char"} {
			if f, ok := t.RawGetString(name).(*glua.LFunction); ok {
				t.RawSetString(name, l.NewFunction(m.counted(name, f.GFunction)))
			}
		}
	}
	if t, ok := l.GetGlobal(glua.MathLibName).(*glua.LTable); ok { // chance has no place in a verdict
		t.RawSetString("random", glua.LNil)
		t.RawSetString("randomseed", glua.LNil)
	}
	clock := l.NewTable()
	clock.RawSetString("time", l.NewFunction(func(l *glua.LState) int { return osTime(l, now) }))
	clock.RawSetString("date", l.NewFunction(func(l *glua.LState) int { return osDate(l, now) }))
	l.SetGlobal(glua.OsLibName, clock)
	return nil
}

// concat is the operator .. on texts and numbers.
func (m *meter) concat(l *glua.LState) int {
	a, b := l.Get(1), l.Get(2)
	for _, v := range []glua.LValue{a, b} {
		if t := v.Type(); t != glua.LTString && t != glua.LTNumber {
			l.RaiseError("attempt to concatenate a %s value", t)
		}
	}
	x, y := a.String(), b.String()
	m.take(l, len(x)+len(y))
	l.Push(glua.LString(x + y))
	return 1
}

// join is table.concat.
func (m *meter) join(l *glua.LState) int {
	t, sep := l.CheckTable(1), l.OptString(2, "")
	from, to := l.OptInt(3, 1), l.OptInt(4, t.Len())
	var b strings.Builder
	for i := from; i <= to; i++ {
		v := t.RawGetInt(i)
		if k := v.Type(); k != glua.LTString && k != glua.LTNumber {
			l.RaiseError("invalid value (%s) at index %d in table for concat", k, i)
		}
		text := v.String()
		m.take(l, len(text)+len(sep))
		if i > from {
			b.WriteString(sep)
		}
		b.WriteString(text)
	}
	l.Push(glua.LString(b.String()))
	return 1
}

// repeat is string.rep.
func (m *meter) repeat(l *glua.LState) int {
	text, n := l.CheckString(1), l.CheckInt(2)
	if n <= 0 || text == "" {
		l.Push(glua.LString(""))
		return 1
	}
	if n > maxBytes/len(text) {
		m.take(l, maxBytes+1)
	}
	m.take(l, n*len(text))
	l.Push(glua.LString(strings.Repeat(text, n)))
	return 1
}

// counted is a function of the library whose text is bounded before it is made:
// by what it is made of, and by the widths of a format.
func (m *meter) counted(name string, f glua.LGFunction) glua.LGFunction {
	return func(l *glua.LState) int {
		size := 0
		for i := 1; i <= l.GetTop(); i++ {
			if s, ok := l.Get(i).(glua.LString); ok {
				size += len(s)
			}
		}
		switch name {
		case "format":
			size += widths(l.CheckString(1))
		case "gsub":
			if with, ok := l.Get(3).(glua.LString); ok {
				size += (len(l.CheckString(1)) + 1) * (1 + len(with))
			}
		}
		m.take(l, size)
		n := f(l)
		if s, ok := l.Get(-n).(glua.LString); ok {
			m.take(l, len(s))
		}
		return n
	}
}

// matching is a function of patterns, whose price is what the pattern may need at
// worst: a power of the text's length for every part that repeats, and the square of the
// length for what is replaced.
func (m *meter) matching(f glua.LGFunction) glua.LGFunction {
	return func(l *glua.LState) int {
		n := float64(len(l.CheckString(1)) + 1)
		steps := n * n / 64
		for _, c := range l.CheckString(2) {
			if strings.ContainsRune("*+-?", c) {
				steps *= n
			}
			if steps > maxMatching {
				l.RaiseError("the pattern %q may take too long on %d bytes", l.CheckString(2), int(n)-1)
			}
		}
		m.charge(l, 100+int(steps/64))
		return f(l)
	}
}

// widths adds up the numbers of a format, such as the 10 of %10s.
func widths(format string) int {
	sum, number := 0, ""
	for i := range len(format) + 1 {
		if i < len(format) && format[i] >= '0' && format[i] <= '9' {
			number += format[i : i+1]
			continue
		}
		if number != "" {
			n, err := strconv.Atoi(number)
			if err != nil || n > maxBytes {
				n = maxBytes
			}
			sum, number = min(sum+n, maxBytes+1), ""
		}
	}
	return sum
}

// osTime is os.time: of a table, or of now.
func osTime(l *glua.LState, now time.Time) int {
	if l.GetTop() == 0 || l.Get(1) == glua.LNil {
		l.Push(glua.LNumber(now.Unix()))
		return 1
	}
	t := l.CheckTable(1)
	field := func(name string, otherwise int) int {
		if n, ok := t.RawGetString(name).(glua.LNumber); ok {
			return int(n)
		}
		return otherwise
	}
	at := time.Date(field("year", 1970), time.Month(field("month", 1)), field("day", 1), field("hour", 12), field("min", 0), field("sec", 0), 0, time.UTC)
	l.Push(glua.LNumber(at.Unix()))
	return 1
}

// dateForms are the letters of os.date.
var dateForms = map[byte]string{'Y': "2006", 'm': "01", 'd': "02", 'H': "15", 'M': "04", 'S': "05", 'y': "06", 'p': "PM", 'A': "Monday", 'a': "Mon", 'B': "January", 'b': "Jan", 'I': "03", 'X': "15:04:05", 'x': "01/02/06", 'c': "Mon Jan  2 15:04:05 2006"}

// osDate is os.date, in UTC.
func osDate(l *glua.LState, now time.Time) int {
	format, at := strings.TrimPrefix(l.OptString(1, "%c"), "!"), now.UTC()
	if l.GetTop() > 1 {
		at = time.Unix(l.CheckInt64(2), 0).UTC()
	}
	if strings.HasPrefix(format, "*t") {
		t := l.NewTable()
		for k, v := range map[string]int{"year": at.Year(), "month": int(at.Month()), "day": at.Day(), "hour": at.Hour(), "min": at.Minute(), "sec": at.Second(), "wday": int(at.Weekday()) + 1, "yday": at.YearDay()} {
			t.RawSetString(k, glua.LNumber(v))
		}
		t.RawSetString("isdst", glua.LFalse)
		l.Push(t)
		return 1
	}
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		if form, ok := dateForms[format[i]]; ok {
			b.WriteString(at.Format(form))
		} else {
			b.WriteByte(format[i])
		}
	}
	l.Push(glua.LString(b.String()))
	return 1
}
