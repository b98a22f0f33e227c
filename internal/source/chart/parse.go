package chart

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/Masterminds/semver/v3"
	"go.yaml.in/yaml/v3"

	"github.com/rutterhq/rutter"
)

const (
	// maxReleases bounds the versions of all charts together.
	maxReleases = 500_000
	// maxEntry bounds what is read of one entry, after what nobody needs was
	// left out.
	maxEntry = 1 << 20
	// maxSkipped is for an index that is nothing but rubbish.
	maxSkipped = 100_000
)

// listed is an entry of an index, as far as it matters.
type listed struct {
	Version string   `json:"version" yaml:"version"`
	URLs    []string `json:"urls"    yaml:"urls"`
	Digest  string   `json:"digest"  yaml:"digest"`
}

// parseIndex reads an index as a stream, entry by entry, so that it costs the
// memory of what is kept and not that of the text.
func parseIndex(r io.Reader) (*index, error) {
	p := &collector{index: &index{charts: map[string][]release{}}}
	in := bufio.NewReaderSize(r, 64<<10)
	first, err := firstByte(in)
	switch {
	case errors.Is(err, io.EOF):
		return nil, rutter.Errorf(rutter.CodeInvalid, "its index is empty")
	case err != nil:
		return nil, err
	case first == '{':
		err = p.json(in)
	case first == '<':
		return nil, rutter.Errorf(rutter.CodeInvalid, "its index is no index but a web page: check the URL, and whether a login is needed")
	default:
		err = (&blockReader{in: in, out: p}).read()
	}
	if err != nil {
		return nil, err
	}
	if !p.entries {
		return nil, rutter.Errorf(rutter.CodeInvalid, "its index has no entries: it is no index of a Helm repository")
	}
	return p.index, nil
}

// firstByte looks at what the index begins with, after a mark of its encoding
// and blanks; they stay, since in YAML it matters where a line begins.
func firstByte(in *bufio.Reader) (byte, error) {
	if mark, _ := in.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		_, _ = in.Discard(3)
	}
	for n := 1; n <= 4096; n++ {
		head, err := in.Peek(n)
		if err != nil {
			return 0, err //nolint:wrapcheck // io.EOF, or the body's
		}
		if c := head[n-1]; c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c, nil
		}
	}
	return ' ', nil
}

// collector keeps what is usable.
type collector struct {
	index    *index
	releases int
	// entries is true once the index was seen to be one.
	entries bool
}

func (c *collector) skip() error {
	if c.index.skipped++; c.index.skipped > maxSkipped {
		return rutter.Errorf(rutter.CodeInvalid, "more than %d entries of its index cannot be used", maxSkipped)
	}
	return nil
}

// add keeps an entry, or counts it as one that cannot be used.
func (c *collector) add(name string, e listed) error {
	version := strings.TrimSpace(e.Version)
	url := ""
	for _, u := range e.URLs {
		if url = strings.TrimSpace(u); url != "" {
			break
		}
	}
	if !nameForm.MatchString(name) || !versionForm.MatchString(version) || url == "" || len(url) > 4096 {
		return c.skip()
	}
	if _, err := semver.NewVersion(version); err != nil {
		return c.skip()
	}
	if c.releases++; c.releases > maxReleases {
		return rutter.Errorf(rutter.CodeInvalid, "its index has more than %d versions of charts", maxReleases)
	}
	if _, ok := c.index.charts[name]; !ok {
		name = strings.Clone(name)
		c.index.bytes += int64(len(name)) + 64
	}
	// One allocation for both texts, and none that holds on to the line.
	text := version + url
	c.index.charts[name] = append(c.index.charts[name], release{version: text[:len(version)], url: text[len(version):], digest: parseDigest(e.Digest)})
	c.index.bytes += int64(len(text)) + 80
	return nil
}

// yaml adds the entries of a text that could not be taken apart by lines.
func (c *collector) yaml(text []byte) error {
	var charts map[string][]listed
	if err := yaml.Unmarshal(text, &charts); err != nil {
		return c.skip()
	}
	for name, entries := range charts {
		for _, e := range entries {
			if err := c.add(name, e); err != nil {
				return err
			}
		}
	}
	return nil
}

var errNoJSON = rutter.Errorf(rutter.CodeInvalid, "its index is no valid JSON")

// json reads an index that was written as JSON.
func (c *collector) json(in io.Reader) error {
	d := json.NewDecoder(in)
	if _, err := d.Token(); err != nil {
		return jsonError(err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return jsonError(err)
		}
		if key != "entries" {
			if err := skipJSON(d); err != nil {
				return err
			}
			continue
		}
		c.entries = true
		if err := c.jsonCharts(d); err != nil {
			return err
		}
	}
	return nil
}

// jsonCharts reads the object of entries: lists by name.
func (c *collector) jsonCharts(d *json.Decoder) error {
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return cmpErr(err)
	}
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return cmpErr(err)
		}
		if t, err = d.Token(); err != nil {
			return jsonError(err)
		}
		if t == nil {
			continue
		}
		if t != json.Delim('[') {
			return errNoJSON
		}
		for d.More() {
			var e listed
			err := d.Decode(&e)
			if _, wrong := errors.AsType[*json.UnmarshalTypeError](err); wrong {
				err = c.skip()
			} else if err == nil {
				err = c.add(name, e)
			}
			if err != nil {
				return jsonError(err)
			}
		}
		if _, err := d.Token(); err != nil {
			return jsonError(err)
		}
	}
	_, err := d.Token()
	return jsonError(err)
}

// skipJSON passes over a value, however large, without holding it.
func skipJSON(d *json.Decoder) error {
	for depth := 0; ; {
		t, err := d.Token()
		if err != nil {
			return jsonError(err)
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// jsonError keeps our own reasons and hides the parser's offsets.
func jsonError(err error) error {
	if err == nil {
		return nil
	}
	if coded, ok := errors.AsType[*rutter.Error](err); ok {
		return coded
	}
	return errNoJSON
}

func cmpErr(err error) error {
	if err == nil {
		return errNoJSON
	}
	return jsonError(err)
}
