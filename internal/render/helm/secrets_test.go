package helm_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/render/rendertest"
)

// TestErrorsHoldNoSecrets: a message of a template, of a schema or of YAML never
// repeats a value that a key has opened, and still says where it was.
func TestErrorsHoldNoSecrets(t *testing.T) {
	const secret = "hunter2hunter2"
	decrypt := func(_ context.Context, _ string, data []byte) ([]byte, bool, error) {
		return bytes.ReplaceAll(data, []byte("ENC"), []byte(secret)), true, nil
	}
	tests := map[string]struct {
		template, schema string
		opts             rutter.HelmOptions
		says             string
	}{
		"fail with the value":          {template: `{{ fail (printf "wrong: %s" .Values.pw) }}`, says: "chart/templates/x.yaml:1"},
		"fail with the chart's words":  {template: `{{ fail "set a color" }}`, says: "set a color"},
		"required":                     {template: `{{ required "a color is required" .Values.color }}`, says: "a color is required"},
		"an argument in a message":     {template: "\n" + `{{ mustToDate "2006" .Values.pw }}`, says: "chart/templates/x.yaml:2: chart web: executing"},
		"a text that is no template":   {template: `{{ tpl .Values.text . }}`, says: "chart/templates/x.yaml:1"},
		"a text that fails":            {template: `{{ tpl "{{ fail .Values.pw }}" . }}`, says: "withheld"},
		"a pattern of the schema":      {schema: `{"properties":{"pw":{"pattern":"^x"}}}`, says: "/pw: does not match the pattern ^x"},
		"a format of the schema":       {schema: `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"pw":{"format":"ipv4"}}}`, says: "/pw: is no valid ipv4"},
		"a constant of the schema":     {schema: `{"properties":{"pw":{"const":"other"}}}`, says: "/pw: value must be"},
		"a list of the schema":         {schema: `{"properties":{"pw":{"enum":["a","b"]}}}`, says: "/pw: value must be"},
		"a value for a whole chart":    {opts: rutter.HelmOptions{ValueFiles: []string{"sub.yaml"}}, says: "the value sub must be a mapping"},
		"what becomes YAML by mistake": {template: "a: {{ .Values.pw }}: b", says: "not valid YAML"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			files := chart(map[string]string{"values.yaml": "sops: {mac: x}\npw: ENC\ntext: '{{ ENC }}'\n", "templates/x.yaml": tt.template, "sub.yaml": "sops: {}\nsub: ENC\n"})
			files["chart/Chart.yaml"] = head + "- {name: sub, version: 1.x}\n"
			files["chart/charts/sub/Chart.yaml"] = "apiVersion: v2\nname: sub\nversion: 1.0.0\n"
			if tt.schema != "" {
				files["chart/values.schema.json"] = tt.schema
			}
			in := input(t, files, tt.opts)
			in.Repo = record.New(t.Context(), rendertest.Snapshot(files), record.Options{Decrypt: decrypt})
			_, _, err := render(t, in)
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("the error does not say %q: %v", tt.says, err)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error holds the secret: %v", err)
			}
		})
	}
}
