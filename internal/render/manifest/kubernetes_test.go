package manifest_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/manifest"
)

// oracle reads a stream as kubectl does: each value of a stream of YAML or JSON,
// null left out, numbers as int64 or float64.
func oracle(stream []byte) (out []any, err error) {
	dec := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(stream), 4096)
	for {
		var raw runtime.RawExtension
		if err := dec.Decode(&raw); err != nil {
			if errors.Is(err, io.EOF) {
				return out, nil
			}
			return out, err
		}
		text := bytes.TrimSpace(raw.Raw)
		if len(text) == 0 || bytes.Equal(text, []byte("null")) {
			continue
		}
		var v any
		if err := utiljson.Unmarshal(text, &v); err != nil {
			return out, err
		}
		out = append(out, v)
	}
}

// ours reads a stream with this package.
func ours(stream []byte) (out []any, err error) {
	docs, err := manifest.Documents(stream, "f.yaml")
	if err != nil {
		return nil, err
	}
	for _, d := range docs {
		v, err := manifest.Decode(d, "f.yaml")
		if err != nil {
			return out, err
		}
		if v != nil {
			out = append(out, v)
		}
	}
	return out, nil
}

func toUTF16(s string, order binary.AppendByteOrder) string {
	var out []byte
	for _, u := range utf16.Encode([]rune("\uFEFF" + s)) {
		out = order.AppendUint16(out, u)
	}
	return string(out)
}

func utf16le(s string) string { return toUTF16(s, binary.LittleEndian) }
func utf16be(s string) string { return toUTF16(s, binary.BigEndian) }

// verdict is how the two readers may differ.
type verdict int

const (
	same      verdict = iota // equal values, or both refuse
	stricter                 // kubectl takes it, in a way that loses something; here it is an error
	more                     // kubectl refuses or overlooks what YAML says plainly
	unordered                // kubectl's answer differs from run to run
)

// TestAsKubernetes compares with kubectl's reader, in process.
func TestAsKubernetes(t *testing.T) {
	tests := map[string]struct {
		in      string
		verdict verdict
		err     string // of ours
		reason  string
	}{
		// Streams.
		"empty":                          {in: ""},
		"blank lines":                    {in: "\n \n\n"},
		"comments only":                  {in: "# a\n# b\n"},
		"one":                            {in: "a: 1\n"},
		"no newline at the end":          {in: "a: 1"},
		"two":                            {in: "a: 1\n---\nb: 2\n"},
		"leading marker":                 {in: "---\na: 1\n"},
		"many markers":                   {in: "---\n---\n---\na: 1\n---\n---\n"},
		"marker with spaces":             {in: "a: 1\n---   \nb: 2\n"},
		"marker with a comment":          {in: "a: 1\n--- # next\nb: 2\n"},
		"marker with a tab":              {in: "a: 1\n---\t\nb: 2\n"},
		"content beside a marker":        {in: "a: 1\n--- {b: 2}\n", verdict: more, reason: "kubectl calls the marker invalid"},
		"text beside a marker":           {in: "--- text\n", verdict: more, reason: "likewise"},
		"a key that begins like one":     {in: "---a: 1\n", verdict: more, reason: "kubectl calls the marker invalid"},
		"four dashes":                    {in: "----\n", verdict: more, reason: "a plain text in YAML"},
		"an indented marker in a text":   {in: "a: |\n  ---\n  b\n"},
		"a marker at the end":            {in: "a: 1\n---"},
		"null documents":                 {in: "null\n---\n~\n---\na: 1\n"},
		"comments between":               {in: "# x\n---\n# y\n---\na: 1\n"},
		"end marker":                     {in: "a: 1\n...\n"},
		"end marker and start":           {in: "a: 1\n...\n---\nb: 2\n"},
		"a document after an end marker": {in: "a: 1\n...\nb: 2\n", verdict: more, reason: "kubectl drops the second document"},
		"a directive":                    {in: "%YAML 1.1\n---\na: 1\n", verdict: more, reason: "kubectl splits the directive from its document, which then is none"},
		"a tag directive":                {in: "%TAG ! tag:x,2000:\n---\na: 1\n", verdict: more, reason: "likewise"},
		"Windows lines":                  {in: "a: 1\r\n---\r\nb: |\r\n  x\r\n  y\r\n"},
		"old Mac lines":                  {in: "a: 1\rb: 2\r"},
		// Encodings.
		"UTF-8 mark":                  {in: "\uFEFFa: 1\n"},
		"UTF-8 mark before a marker":  {in: "\uFEFF---\na: 1\n"},
		"UTF-8 mark of a second file": {in: "a: 1\n---\n\uFEFFb: 2\n"},
		"UTF-8 mark before JSON":      {in: "\uFEFF{\"a\": 1.0}", verdict: more, reason: "kubectl takes it for YAML then, where 1.0 is a whole number"},
		"UTF-16, little end first":    {in: utf16le("a: ü\n"), verdict: more, reason: "kubectl cuts lines in the middle of a character"},
		"UTF-16, big end first":       {in: utf16be("a: 😀\n")},
		"UTF-16, two documents":       {in: utf16le("a: 1\n---\nb: 2\n"), verdict: more, reason: "kubectl does not see the marker and drops the second"},
		"UTF-16 cut in a character":   {in: utf16le("a: 1")[:9], verdict: stricter, err: "f.yaml:1: the text is no valid UTF-16"},
		"UTF-16, half a pair":         {in: utf16le("a: 1\n") + "\x00\xD8", err: "f.yaml:2: the text is no valid UTF-16"},
		"UTF-16 without a mark":       {in: utf16le("a: 1\n")[2:], err: "f.yaml:1: is not valid YAML: the character U+0000 is not allowed"},
		"UTF-32":                      {in: "\xFF\xFE\x00\x00a\x00\x00\x00", err: "UTF-32"},
		"not UTF-8":                   {in: "a: 1\nb: \xE4\n", err: "f.yaml:2: the text is not UTF-8"},
		"not UTF-8 in a comment":      {in: "# \xE4\na: 1\n", err: "f.yaml:1: the text is not UTF-8"},
		"not UTF-8 in JSON":           {in: "{\"a\": \"\xE4\"}", verdict: stricter, err: "f.yaml:1: the text is not UTF-8", reason: "kubectl writes U+FFFD into the object"},
		"a control character":         {in: "a: 1\nb: \x01\n", err: "f.yaml:2: is not valid YAML: the character U+0001"},
		"a zero byte":                 {in: "a: \x00\n", err: "U+0000"},
		"escapes":                     {in: "a: \"\\x41\\u00fc\\U0001F600\\e\\0\"\n"},
		"umlauts, emoji, line marks":  {in: "ü: 😀 \u2028 \u00a0\n"},
		"markup that JSON escapes":    {in: "a: <b>&amp;</b>\n"},
		"binary":                      {in: "a: !!binary aGVsbG8=\n"},
		"binary that is no text":      {in: "a: !!binary /////w==\n"},
		"a surrogate escape":          {in: "a: \"\\ud83d\\ude00\"\n", err: "f.yaml:1:"},
		"a surrogate escape in JSON":  {in: `{"a": "\ud83d\ude00 \/"}`},
		"half a surrogate in JSON":    {in: `{"a": "\ud83d"}`},
		"a tab before a key":          {in: "a:\n\tb: 1\n", err: "f.yaml:2: is not valid YAML: found character that cannot start any token"},
		"a tab in a value":            {in: "a: b\tc\n"},
		"a tab after a colon":         {in: "a:\tb\n"},
		"tabs in JSON":                {in: "{\n\t\"a\": {\n\t\t\"b\": 1\n\t}\n}\n"},
		"tabs in a flow mapping":      {in: "{\n\ta: 1\n}\n"},
		"a tab before a comment":      {in: "a: 1\t# c\n"},
		// Scalars.
		"booleans of YAML 1.1":                {in: "a: [y, n, Y, N, yes, no, Yes, NO, on, off, On, OFF, true, false, True, FALSE, tRue]\n"},
		"quoted booleans":                     {in: "a: ['y', \"no\", !!str yes]\n"},
		"null forms":                          {in: "a: [null, Null, NULL, ~, , 'null', nULL]\n", err: "f.yaml:1:"},
		"null values":                         {in: "a:\nb: ~\nc: null\nd: ''\n"},
		"integers":                            {in: "a: [0, -1, +1, 9223372036854775807, -9223372036854775808]\n"},
		"huge integers":                       {in: "a: [9223372036854775808, 18446744073709551615, 18446744073709551616, -9223372036854775809, 1234567890123456789012345678901234567890]\n"},
		"huge integers in JSON":               {in: `{"a": [9223372036854775807, 9223372036854775808, 1234567890123456789012345678901234567890, -0, 1e400000]}`, err: "f.yaml:1:"},
		"octal":                               {in: "a: [0777, 0o777, 08, 0100644, -017]\n"},
		"hex, binary, underscores":            {in: "a: [0xFF, 0b11, 1_000, 0x_f, 1__0, _1, -0x1]\n"},
		"sexagesimal":                         {in: "a: [1:30, 190:20:30, 12:30:45.5]\n"},
		"floats":                              {in: "a: [1e3, 1.0, .5, 1., 1.5e-7, -0.0, 1E400, 1e21, 1e20, 123456789012345680000.0, 1e-9, 6.02e23]\n"},
		"floats that are large integers":      {in: "a: [1152921504606846976.0, 9007199254740993.0, 9.223372036854775807e18, -9.223372036854775808e18, 1e18, 3e15]\n"},
		"floats in JSON":                      {in: `{"a": [1e3, 1.0, 1.5e-7, -0.0, 1e21, 100000000000000000000]}`},
		"infinity":                            {in: "a: 1\nb: .inf\n", err: "f.yaml:2: +Inf is no value that Kubernetes knows"},
		"not a number":                        {in: "a: .NaN\n", err: "f.yaml:1: NaN is no value that Kubernetes knows"},
		"dates":                               {in: "a: [2001-12-14, 2001-12-14t21:59:43.10-05:00, 2001-12-14 21:59:43.10 -5, 2002-1-1]\n"},
		"a date with its tag":                 {in: "a: !!timestamp 2001-12-14\n"},
		"explicit tags":                       {in: "a: [!!str 1, !!int '1', !!float 1, !!bool 'yes', !!null '']\n"},
		"a tag of one's own":                  {in: "a: !mine b\n"},
		"a versions that looks like a number": {in: "a: [1.10, v1.10, 1.10.0, 1e5, '1e5', 0.10]\n"},
		"block texts":                         {in: "a: |\n  x\n   y\n\nb: >\n  x\n  y\n\n  z\nc: |-\n  x\nd: |+\n  x\n\n"},
		"block text with indent":              {in: "a: |2\n    x\n"},
		"quotes":                              {in: "a: 'it''s'\nb: \"a\\tb\\nc\\\n  d\"\n"},
		"a colon in a value":                  {in: "a: b: c\n", err: "f.yaml:1: is not valid YAML: mapping values are not allowed in this context (document 1)"},
		"a text over lines":                   {in: "a: b\n  c\n  d\n"},
		"a very long text":                    {in: "a: " + strings.Repeat("x", 100_000) + "\n"},
		// Keys.
		"a key twice":                  {in: "a: 1\nb: 2\na: 3\n", verdict: stricter, err: `f.yaml:3: the key "a" appears twice in one mapping: remove one of them (document 1)`},
		"a key twice, second document": {in: "x: 1\n---\nm:\n  a: 1\n  a: 1\n", verdict: stricter, err: `f.yaml:5: the key "a" appears twice in one mapping: remove one of them (document 2)`},
		"a key twice in JSON":          {in: "{\"m\": {\n\"a\": 1,\n\"a\": 2}}", verdict: stricter, err: `f.yaml:3: the key "a" appears twice`},
		"a key twice in a flow":        {in: "m: {a: 1, a: 2}\n", verdict: stricter, err: `f.yaml:1: the key "a" appears twice`},
		"1 and '1'":                    {in: "1: a\n'1': b\n", verdict: unordered, err: `f.yaml:1: the key "1" appears twice`},
		"yes and 'true'":               {in: "yes: a\n'true': b\n", verdict: unordered, err: `the key "true" appears twice`},
		"keys that are no text":        {in: "1: a\n-2: c\non: b\n1.5: d\n.inf: g\n2001-01-01: e\n0x10: f\n"},
		"a null key":                   {in: "a:\n  ~: b\n", err: "null cannot be a key"},
		"an empty key":                 {in: ": b\n", err: "f.yaml:1:"},
		"a quoted empty key":           {in: "'': b\n"},
		"a mapping as key":             {in: "{a: b}: c\n", err: "f.yaml:1:"},
		"a list as key":                {in: "? [a]\n: c\n", err: "f.yaml:1:"},
		"a huge key":                   {in: "18446744073709551615: a\n", err: "cannot be a key"},
		"a long key":                   {in: strings.Repeat("k", 1025) + ": a\n", err: "f.yaml:1:"},
		"an explicit key":              {in: "? a\n: b\n"},
		"a key with dots and slashes":  {in: "app.kubernetes.io/name: x\n"},
		// Anchors.
		"an alias":                     {in: "a: &x {b: 1}\nc: *x\nd: [*x, *x]\n"},
		"a merge key":                  {in: "a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  c: 3\n"},
		"a merge of several":           {in: "a: &x {b: 1}\nb: &y {b: 2, c: 2}\nd:\n  <<: [*x, *y]\n"},
		"a merge before and after":     {in: "a: &x {b: 1}\nd: {b: 0, <<: *x}\ne: {<<: *x, b: 0}\n"},
		"a merge of no mapping":        {in: "a: &x [1]\nd:\n  <<: *x\n", err: "f.yaml:1: is not valid YAML: map merge requires map"},
		"an alias to nothing":          {in: "a: *x\n", err: "f.yaml:1: is not valid YAML: unknown anchor 'x' referenced"},
		"an alias to another document": {in: "a: &x 1\n---\nb: *x\n", err: "unknown anchor 'x' referenced (document 2)"},
		"an anchor in itself":          {in: "a: &x\n  b: *x\n", err: "anchor 'x' value contains itself"},
		"an anchor set again":          {in: "a: &x 1\nb: *x\nc: &x 2\nd: *x\n"},
		// JSON streams.
		"JSON":                       {in: `{"a": {"b": [1, 2.5, "x", true, null]}}`},
		"JSON objects in a row":      {in: `{"a": 1}{"b": 2} {"c": 3}` + "\n" + `{"d": 4}`},
		"JSON objects and markers":   {in: "{\"a\": 1}\n---\n{\"b\": 2}\n"},
		"JSON after YAML":            {in: "a: 1\n---\n{\"b\": [1]}\n"},
		"JSON and then YAML":         {in: "{\"a\": 1}\n---\nb: 2\n"},
		"JSON and a comma":           {in: `{"a": 1,}`, verdict: same, reason: "it is YAML"},
		"JSON with comments":         {in: "{\"a\": 1} # one\n"},
		"JSON array":                 {in: `[{"a": 1}]`},
		"JSON cut off":               {in: `{"a": 1`, err: "f.yaml:1: is not valid YAML: did not find expected ',' or '}'"},
		"several JSON, one broken":   {in: "{\"a\": 1}\n{\"b\": }", verdict: stricter, err: "f.yaml:2: is not valid YAML: did not find expected <document start>", reason: "kubectl goes on in YAML"},
		"flow mappings in a row":     {in: "{a: 1}\n{b: 2}\n", verdict: stricter, err: "f.yaml:2: is not valid YAML: did not find expected <document start>", reason: "kubectl drops the second"},
		"a text and a mapping":       {in: "\"a\"\nb: 1\n", verdict: stricter, err: "f.yaml:", reason: "kubectl drops the second"},
		"a key twice beside a merge": {in: "a: &x {b: 1}\nd:\n  <<: *x\n  c: 1\n  c: 2\n", verdict: stricter, err: `f.yaml:5: the key "c" appears twice in one mapping`},
		// Values that are no mapping.
		"a text":   {in: "just a text\n"},
		"a number": {in: "42\n"},
		"a list":   {in: "- a\n- b: 1\n- [c, {d: e}]\n-\n"},
		// Errors.
		"bad indentation":       {in: "a:\n  b: 1\n c: 2\n", err: "f.yaml:3: is not valid YAML: did not find expected key"},
		"an open quote":         {in: "a: \"b\nc: d\n", err: "f.yaml:"},
		"an open bracket":       {in: "a: [1, 2\nb: 3\n", err: "f.yaml:"},
		"a template":            {in: "a: {{ .Values.x }}\n", err: "f.yaml:1:"},
		"a template on a line":  {in: "a: 1\n{{ if x }}\n", err: "f.yaml:2:"},
		"a percent sign":        {in: "a: %x\n", err: "f.yaml:1:"},
		"an at sign":            {in: "a: @x\n", err: "f.yaml:1:"},
		"a backquote":           {in: "a: `x`\n", err: "f.yaml:1:"},
		"in the third document": {in: "a: 1\n---\nb: 2\n---\n\nc: [\n", err: "(document 3)"},
	}
	counts := map[verdict]int{}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		tt := tests[name]
		counts[tt.verdict]++
		t.Run(name, func(t *testing.T) {
			want, wantErr := oracle([]byte(tt.in))
			got, err := ours([]byte(tt.in))
			if tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) || !strings.HasPrefix(err.Error(), "f.yaml:") || rutter.CodeOf(err) != rutter.CodeInvalid) {
				t.Errorf("want %q, got %#v, %v", tt.err, got, err)
			}
			equal := (err == nil) == (wantErr == nil) && (err != nil || reflect.DeepEqual(got, want))
			switch tt.verdict {
			case same:
				if !equal {
					t.Errorf("%s: kubectl %#v, %v; here %#v, %v\n%s", tt.reason, want, wantErr, got, err, cmp.Diff(want, got))
				}
			case stricter:
				if err == nil || wantErr != nil {
					t.Errorf("%s: kubectl %#v, %v; here %#v, %v", tt.reason, want, wantErr, got, err)
				}
			case more:
				if err != nil || equal {
					t.Errorf("%s: kubectl %#v, %v; here %#v, %v", tt.reason, want, wantErr, got, err)
				}
			case unordered:
				if err == nil {
					t.Errorf("%s: here %#v", tt.reason, got)
				}
			}
		})
	}
	t.Logf("%d cases: %d equal, %d stricter, %d more, %d where kubectl is not deterministic", len(tests), counts[same], counts[stricter], counts[more], counts[unordered])
}

// TestLimits: what is too much is refused before it costs much.
func TestLimits(t *testing.T) {
	var laughs strings.Builder
	laughs.WriteString("a0: &a0 [lol, lol, lol]\n")
	for i := range 12 {
		fmt.Fprintf(&laughs, "a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", "))
	}
	tests := map[string]struct{ in, want string }{
		"a billion laughs":           {laughs.String(), "document contains excessive aliasing"},
		"few aliases to much":        {"a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 50) + "]\n", "grows to more than 1000000 values or 8 MiB"},
		"merges of merges":           {strings.ReplaceAll(laughs.String(), "lol", "{lol: lol}"), "excessive aliasing"},
		"deep flow":                  {"a: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "values lie deeper than 500"},
		"deeper flow":                {"a: " + strings.Repeat("[", 200_000), "f.yaml:"},
		"deep blocks":                {strings.Repeat("- ", 3000) + "x", "values lie deeper than 500"},
		"deep JSON":                  {`{"a":` + strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000) + "}", "values lie deeper than 500"},
		"deeper JSON":                {strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000), "f.yaml:"},
		"many values":                {"[" + strings.Repeat("a,", 1_000_001) + "]", "f.yaml:1: the document holds more than 1000000 values: split it into several (document 1)"},
		"many documents":             {strings.Repeat("a: 1\n---\n", 20_001), "f.yaml:40001: the file holds more than 20000 documents"},
		"many JSON documents":        {strings.Repeat("{}", 20_001), "holds more than 20000 documents"},
		"many keys that are one":     {strings.Repeat("? a\n", 100_000), "appears twice"},
		"a long line of quotes":      {strings.Repeat("\"", 1_000_000), "f.yaml:"},
		"a long line of anchors":     {strings.Repeat("&a ", 300_000), "f.yaml:"},
		"a long line of questions":   {strings.Repeat("? ", 300_000), "f.yaml:"},
		"a long line of opened maps": {strings.Repeat("{a: ", 300_000), "f.yaml:"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := ours([]byte(tt.in)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("want %q, got %v (%d values)", tt.want, err, len(got))
			}
		})
	}
}

// FuzzManifest: whatever the bytes, nothing panics; what is decoded is what
// Kubernetes makes of the document, survives writing and reading, and can be
// copied as an object.
func FuzzManifest(f *testing.F) {
	for _, seed := range []string{
		"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a, labels: {b: c}}}\n-\n",
		"a: &x {b: 1}\n---\nc: [*x, 0777, 1e3, .inf, yes, 2001-01-01, !!binary aGk=]\n", "{\"a\": 1}{\"b\": 1.0}\n---\n...\n",
		utf16le("kind: ConfigMapList\nitems: null\n"), "\uFEFF%YAML 1.1\n--- |\n x\n", "1: a\n'1': b\n", "a: 9223372036854775808\nb: 1152921504606846976.0\n",
		"<<: {a: 1}\nb: !!timestamp 2001-12-14\n", "? [a]\n: \xE4", "{\"a\":\"\\ud83d\",\"a\":2}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 64<<10 {
			return
		}
		began := time.Now()
		defer func() {
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("%d bytes took %s", len(data), took)
			}
		}()
		docs, err := manifest.Documents(data, "f.yaml")
		if err != nil {
			located(t, err)
			return
		}
		for i, d := range docs {
			if d.Number != i+1 {
				t.Fatalf("document %d is number %d", i+1, d.Number)
			}
			v, err := manifest.Decode(d, "f.yaml")
			if err != nil {
				located(t, err)
				continue
			}
			agree(t, d.Data, v)
			roundTrip(t, v)
			objs, err := d.Objects(v, "f.yaml")
			if err != nil {
				located(t, err)
			}
			for _, o := range objs {
				o.DeepCopy()
			}
		}
	})
}

// located: an error names the file and a line.
func located(t *testing.T, err error) {
	t.Helper()
	var e *rutter.Error
	if !errors.As(err, &e) || e.File != "f.yaml" || e.Line < 1 || strings.Contains(err.Error(), "\n") {
		t.Fatalf("not located: %q", err)
	}
}

// agree compares a decoded document with what Kubernetes makes of it.
func agree(t *testing.T, data []byte, got any) {
	t.Helper()
	js, err := utilyaml.ToJSON(data)
	if err != nil {
		t.Fatalf("Kubernetes refuses what is taken here: %v\n%q", err, data)
	}
	var want any
	if err := utiljson.Unmarshal(js, &want); err != nil {
		// It looks like JSON and is YAML.
		if want, err = oneYAML(data); err != nil {
			t.Fatalf("Kubernetes refuses what is taken here: %v\n%q", err, data)
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%q is %#v, for Kubernetes %#v", data, got, want)
	}
}

func oneYAML(data []byte) (any, error) {
	var v any
	err := utilyaml.Unmarshal(data, &v)
	return v, err
}

// roundTrip: written as JSON and read again it is the same.
func roundTrip(t *testing.T, v any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	again, err := manifest.DecodeJSON(text, "f.json")
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	second, err := json.Marshal(again)
	if err != nil || !bytes.Equal(text, second) {
		t.Fatalf("%s became %s: %v", text, second, err)
	}
}
