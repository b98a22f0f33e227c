package helm_test

import (
	"strings"
	"testing"

	"github.com/rutterhq/rutter"
)

func TestRemoteValueFiles(t *testing.T) {
	e := &elsewhere{have: map[string]map[string]string{
		"https://example.com/envs/prod.yaml":    {"prod.yaml": "x: remote\n"},
		"http://example.com/bad.yaml":           {"bad.yaml": "- no\n"},
		"https://example.com/envs/*.yaml":       {"*.yaml": "x: star\n"},
		"https://example.com/prod.yaml?token=s": {"prod.yaml": "x: query\n"},
	}}
	tests := map[string]struct {
		opts    rutter.HelmOptions
		schemes []string
		want    string
		code    rutter.Code
		says    string
	}{
		"over HTTPS":            {opts: rutter.HelmOptions{ValueFiles: []string{"https://example.com/envs/prod.yaml"}}, want: "1.0.0 remote"},
		"with the environment":  {opts: rutter.HelmOptions{ValueFiles: []string{"https://example.com/envs/$UNKNOWN/prod.yaml"}}, code: rutter.CodeNotFound, says: "fetch https://example.com/envs//prod.yaml"},
		"a later file wins":     {opts: rutter.HelmOptions{ValueFiles: []string{"https://example.com/envs/prod.yaml", "local.yaml"}}, want: "1.0.0 local"},
		"never a pattern":       {opts: rutter.HelmOptions{ValueFiles: []string{"https://example.com/envs/*.yaml"}}, want: "1.0.0 star"},
		"with a query":          {opts: rutter.HelmOptions{ValueFiles: []string{"https://example.com/prod.yaml?token=s"}}, want: "1.0.0 query"},
		"a file parameter":      {opts: rutter.HelmOptions{FileParameters: []rutter.HelmFile{{Name: "x", Path: "https://example.com/envs/prod.yaml"}}}, want: "1.0.0 x: remote\n"},
		"missing is an error":   {opts: rutter.HelmOptions{ValueFiles: []string{"https://example.com/gone.yaml"}, IgnoreMissingValueFiles: true}, code: rutter.CodeNotFound, says: "https://example.com/gone.yaml"},
		"no values":             {opts: rutter.HelmOptions{ValueFiles: []string{"http://example.com/bad.yaml"}}, code: rutter.CodeInvalid, says: "http://example.com/bad.yaml:1: cannot be read: it is no mapping, but of the kind array"},
		"another protocol":      {opts: rutter.HelmOptions{ValueFiles: []string{"ftp://u:hunter2@example.com/v.yaml"}}, code: rutter.CodeInvalid, says: "ftp://example.com/v.yaml: files are not read over ftp here (allowed: http, https)"},
		"a protocol allowed":    {opts: rutter.HelmOptions{ValueFiles: []string{"http://example.com/bad.yaml"}}, schemes: []string{"https"}, code: rutter.CodeInvalid, says: "not read over http here (allowed: https)"},
		"none allowed":          {opts: rutter.HelmOptions{ValueFiles: []string{"https://example.com/envs/prod.yaml"}}, schemes: []string{}, code: rutter.CodeInvalid, says: "not read over https here"},
		"this machine's files":  {opts: rutter.HelmOptions{ValueFiles: []string{"file:///etc/passwd"}}, code: rutter.CodeInvalid, says: "not read over file here"},
		"nothing but a machine": {opts: rutter.HelmOptions{ValueFiles: []string{"https://example.com/"}}, code: rutter.CodeInvalid, says: "names no file"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"chart/local.yaml": "x: local\n"}
			for f, data := range subchart("web", "1.0.0") {
				files["chart/"+f] = strings.ReplaceAll(data, "'{{ .Chart.Version }} {{ .Values.x }}'", "{{ printf \"%s %s\" .Chart.Version (toString .Values.x) | quote }}")
			}
			in := inputFrom(t, files, tt.opts, e)
			in.ValuesFileSchemes = tt.schemes
			objs, _, err := render(t, in)
			if tt.code != "" {
				if rutter.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "hunter2") {
					t.Errorf("code %q, want %q, says %q: %v", rutter.CodeOf(err), tt.code, tt.says, err)
				}
				return
			}
			if err != nil || contents(objs)["web"] != tt.want {
				t.Errorf("got %q, want %q: %v", contents(objs)["web"], tt.want, err)
			}
			for _, repo := range e.asked {
				if repo.Project != "team" || !repo.File {
					t.Errorf("asked for %+v: the project is missing, or it is no file", repo)
				}
			}
		})
	}
}
