package decrypt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/getsops/sops/v3"
	"github.com/getsops/sops/v3/stores"
	"gopkg.in/ini.v1"

	"github.com/rutterhq/rutter"
)

// The library's own readers and writers of files are not used: they bring its
// configuration and with it two object stores and a service mesh into the
// program, expand aliases without a limit, and write large JSON in quadratic time.

// document is a sealed file taken apart.
type document struct {
	// branches are the file's values, its metadata among them.
	branches sops.TreeBranches
	// metadata says in which form the metadata is kept.
	metadata stores.MetadataOpts
	// write returns the file with the values of opened branches; comments maps
	// sealed comments to what they say.
	write func(branches sops.TreeBranches, comments map[string]string) ([]byte, error)
}

// load takes a sealed file apart. Errors don't quote it.
func load(where place, f format, data []byte) (document, error) {
	switch f {
	case formatYAML:
		return loadYAML(where, data)
	case formatJSON:
		branch, err := loadJSON(where, data)
		return document{branches: sops.TreeBranches{branch}, write: writeJSON}, err
	case formatDotenv:
		branch, err := loadDotenv(where, data)
		return document{
			branches: sops.TreeBranches{branch}, write: writeDotenv,
			metadata: stores.MetadataOpts{Flatten: stores.MetadataFlattenFull},
		}, err
	case formatINI:
		branch, err := loadINI(where, data)
		return document{
			branches: sops.TreeBranches{branch}, write: writeINI,
			metadata: stores.MetadataOpts{Flatten: stores.MetadataFlattenBelowTop, EscapeNewlines: true},
		}, err
	case formatBinary, formatNone:
	}
	branch, err := loadJSON(where, data)
	return document{branches: sops.TreeBranches{branch}, write: writeBinary}, err
}

// writeBinary returns the one value that a sealed binary file has.
func writeBinary(branches sops.TreeBranches, _ map[string]string) ([]byte, error) {
	for _, item := range branches[0] {
		if text, ok := item.Value.(string); ok && item.Key == "data" {
			return []byte(text), nil
		}
	}
	return nil, rutter.Errorf(rutter.CodeInvalid, "it has no data")
}

// loadJSON keeps the order of a JSON object: the MAC covers the values in it.
func loadJSON(where place, data []byte) (sops.TreeBranch, error) {
	invalid := where.errorf(rutter.CodeInvalid, "is sealed with SOPS but is no JSON object: seal it again with the sops tool")
	if !json.Valid(data) { // which also limits the depth
		return nil, invalid
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	v, err := jsonValue(dec)
	branch, ok := v.(sops.TreeBranch)
	if err != nil || !ok {
		return nil, invalid
	}
	return branch, nil
}

// jsonValue reads the next value of valid JSON.
func jsonValue(dec *json.Decoder) (any, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller replaces it
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return jsonObject(dec)
		}
		list := []any{}
		for dec.More() {
			v, err := jsonValue(dec)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := dec.Token()
		return list, err //nolint:wrapcheck // the caller replaces it
	case json.Number:
		// The MAC is over what the library makes of a number.
		if i, err := t.Int64(); err == nil {
			return int(i), nil
		}
		return t.Float64() //nolint:wrapcheck // the caller replaces it
	}
	return token, nil
}

func jsonObject(dec *json.Decoder) (sops.TreeBranch, error) {
	branch := sops.TreeBranch{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err //nolint:wrapcheck // the caller replaces it
		}
		v, err := jsonValue(dec)
		if err != nil {
			return nil, err
		}
		branch = append(branch, sops.TreeItem{Key: key, Value: v})
	}
	_, err := dec.Token()
	return branch, err //nolint:wrapcheck // the caller replaces it
}

func writeJSON(branches sops.TreeBranches, _ map[string]string) ([]byte, error) {
	var text, out bytes.Buffer
	if err := appendJSON(&text, branches[0]); err != nil {
		return nil, err
	}
	if err := json.Indent(&out, text.Bytes(), "", "  "); err != nil {
		return nil, err //nolint:wrapcheck // the caller replaces it
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

func appendJSON(out *bytes.Buffer, v any) error {
	switch v := v.(type) {
	case sops.TreeBranch:
		out.WriteByte('{')
		for i, item := range v {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := appendJSON(out, item.Key); err != nil {
				return err
			}
			out.WriteByte(':')
			if err := appendJSON(out, item.Value); err != nil {
				return err
			}
		}
		out.WriteByte('}')
	case []any:
		out.WriteByte('[')
		first := true
		for _, e := range v {
			if _, comment := e.(sops.Comment); comment {
				continue
			}
			if !first {
				out.WriteByte(',')
			}
			first = false
			if err := appendJSON(out, e); err != nil {
				return err
			}
		}
		out.WriteByte(']')
	default:
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		return enc.Encode(v) //nolint:wrapcheck // the caller replaces it
	}
	return nil
}

// maxName bounds a name in a flat file: metadata is nested in it.
const maxName = 512

func loadDotenv(where place, data []byte) (sops.TreeBranch, error) {
	var branch sops.TreeBranch
	for i, line := range strings.Split(string(data), "\n") {
		if line == "" {
			continue
		}
		if comment, ok := strings.CutPrefix(line, "#"); ok {
			branch = append(branch, sops.TreeItem{Key: sops.Comment{Value: comment}})
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || len(name) > maxName {
			return nil, where.errorAt(rutter.CodeInvalid, i+1, "is sealed with SOPS, but this line is no NAME=value: seal it again with the sops tool")
		}
		branch = append(branch, sops.TreeItem{Key: name, Value: strings.ReplaceAll(value, `\n`, "\n")})
	}
	return branch, nil
}

func writeDotenv(branches sops.TreeBranches, _ map[string]string) ([]byte, error) {
	var out bytes.Buffer
	for _, item := range branches[0] {
		if comment, ok := item.Key.(sops.Comment); ok {
			fmt.Fprintf(&out, "#%s\n", comment.Value)
			continue
		}
		fmt.Fprintf(&out, "%s=%s\n", item.Key, strings.ReplaceAll(stores.ValToString(item.Value), "\n", `\n`))
	}
	return out.Bytes(), nil
}

func loadINI(where place, data []byte) (sops.TreeBranch, error) {
	file, err := ini.LoadSources(ini.LoadOptions{AllowNonUniqueSections: true}, data)
	if err != nil {
		return nil, where.errorAt(rutter.CodeInvalid, lineOf(err), "is sealed with SOPS but is no valid INI: seal it again with the sops tool")
	}
	var branch sops.TreeBranch
	for _, section := range file.Sections() {
		values := iniComment(nil, section.Comment)
		for _, key := range section.Keys() {
			if len(key.Name()) > maxName {
				return nil, where.errorf(rutter.CodeInvalid, "has a name of more than %d characters", maxName)
			}
			values = append(values, sops.TreeItem{Key: key.Name(), Value: key.Value()})
			values = iniComment(values, key.Comment)
		}
		branch = append(branch, sops.TreeItem{Key: section.Name(), Value: values})
	}
	return branch, nil
}

// iniComment appends a comment without its mark.
func iniComment(branch sops.TreeBranch, comment string) sops.TreeBranch {
	if comment == "" {
		return branch
	}
	return append(branch, sops.TreeItem{Key: sops.Comment{Value: strings.TrimLeft(comment, comment[:1]+" ")}})
}

func writeINI(branches sops.TreeBranches, _ map[string]string) ([]byte, error) {
	file := ini.Empty(ini.LoadOptions{AllowNonUniqueSections: true})
	file.DeleteSection(ini.DefaultSection)
	for _, item := range branches[0] {
		values, ok := item.Value.(sops.TreeBranch)
		name, named := item.Key.(string)
		if !ok || !named {
			continue
		}
		section, err := file.NewSection(name)
		if err != nil {
			return nil, err //nolint:wrapcheck // the caller replaces it
		}
		if err := iniSection(section, values); err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	_, err := file.WriteTo(&out)
	return out.Bytes(), err
}

// iniSection writes the values of a section; a comment belongs to what stands
// before it in the tree.
func iniSection(section *ini.Section, values sops.TreeBranch) error {
	comment := &section.Comment
	var problems []error
	for _, v := range values {
		switch name := v.Key.(type) {
		case sops.Comment:
			*comment = name.Value
		case string:
			key, err := section.NewKey(name, stores.ValToString(v.Value))
			if err != nil {
				problems = append(problems, err)
				continue
			}
			comment = &key.Comment
		}
	}
	return errors.Join(problems...)
}
