package decrypt

import (
	"bytes"
	"encoding/json"
	"path"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// format is how a file is sealed; formatNone means that it is not.
type format string

const (
	formatNone   format = ""
	formatYAML   format = "YAML"
	formatJSON   format = "JSON"
	formatDotenv format = "dotenv"
	formatINI    format = "INI"
	formatBinary format = "binary"
)

// Envelopes as they stand in a file's text.
var (
	dotenvEnvelope = regexp.MustCompile(`(?m)^sops_(mac|version|lastmodified)=`)
	iniEnvelope    = regexp.MustCompile(`(?m)^\[sops\]\s*$`)
	yamlEnvelope   = regexp.MustCompile(`(?m)^sops:\s*$`)
	bigEnvelope    = regexp.MustCompile(`(?m)^sops_mac=ENC\[|^\s+"?mac"?: "?ENC\[AES256_GCM|^mac\s*=\s*ENC\[`)
	sealedValue    = regexp.MustCompile(`^ENC\[AES256_GCM,data:[^,]*,iv:[^,]*,tag:[^,]*,type:[^,\]]*\]$`)
)

// formatOf returns the format in which a file is sealed. The name decides; for
// other names than SOPS knows, an envelope in the content does.
func formatOf(name string, data []byte) format {
	if !bytes.Contains(data, []byte("sops")) {
		return formatNone
	}
	base := strings.ToLower(path.Base(name))
	switch {
	case strings.HasSuffix(base, ".yaml"), strings.HasSuffix(base, ".yml"):
		return sealedYAML(data)
	case strings.HasSuffix(base, ".json"), strings.HasSuffix(base, ".dockerconfigjson"):
		return sealedJSON(data)
	case strings.HasSuffix(base, ".env"), base == "dotenv", strings.HasPrefix(base, ".env."):
		if dotenvEnvelope.Match(data) {
			return formatDotenv
		}
		return formatNone
	case strings.HasSuffix(base, ".ini"):
		if iniEnvelope.Match(data) {
			return formatINI
		}
		return formatNone
	}
	return sealedOther(data)
}

func sealedOther(data []byte) format {
	var file struct {
		Data json.RawMessage `json:"data"`
		Sops map[string]any  `json:"sops"`
	}
	switch {
	case json.Unmarshal(data, &file) == nil && envelope(file.Sops):
		if bytes.HasPrefix(file.Data, []byte(`"`)) {
			return formatBinary
		}
		return formatJSON
	case dotenvEnvelope.Match(data):
		return formatDotenv
	case iniEnvelope.Match(data):
		return formatINI
	case yamlEnvelope.Match(data):
		return sealedYAML(data)
	}
	return formatNone
}

// sealedYAML looks at the first document: SOPS repeats its envelope in each. A
// file that is no YAML is sealed when its text says so, and a template or
// something for its tool to complain about when not.
func sealedYAML(data []byte) format {
	var doc struct {
		Sops yaml.Node `yaml:"sops"`
	}
	var metadata map[string]any
	err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&doc)
	if err == nil && doc.Sops.Kind == yaml.MappingNode {
		err = doc.Sops.Decode(&metadata)
	}
	if envelope(metadata) || err != nil && yamlEnvelope.Match(data) && bytes.Contains(data, []byte("mac: ENC[")) {
		return formatYAML
	}
	return formatNone
}

func sealedJSON(data []byte) format {
	var doc struct {
		Sops map[string]any `json:"sops"`
	}
	err := json.Unmarshal(data, &doc)
	if envelope(doc.Sops) || err != nil && bytes.Contains(data, []byte(`"mac": "ENC[`)) {
		return formatJSON
	}
	return formatNone
}

// envelope tells SOPS' metadata from other things that are called "sops", such
// as a chart's values for a sops container.
func envelope(sops map[string]any) bool {
	if len(sops) == 0 {
		return false
	}
	if sops["mac"] != nil || sops["lastmodified"] != nil {
		return true
	}
	for _, recipients := range []string{"age", "pgp", "kms", "gcp_kms", "azure_kv", "hc_vault", "hckms", "key_groups"} {
		if list, ok := sops[recipients].([]any); ok && len(list) > 0 && sops["version"] != nil {
			return true
		}
	}
	return false
}
