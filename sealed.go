package rutter

import (
	"encoding/base64"
	"regexp"
	"slices"
)

var (
	sealedValue = regexp.MustCompile(`^ENC\[AES256_GCM,data:[^,\]]*,iv:[^,\]]+,tag:[^,\]]+,type:[a-z]+\]$`)
	sealedIn    = regexp.MustCompile(`ENC\[AES256_GCM,data:[^,\]]*,iv:[^,\]]+,tag:[^,\]]+,type:[a-z]+\]`)
)

// Sealed reports whether an object holds an envelope of SOPS: its metadata, a
// sealed value anywhere, or a sealed file in a Secret's data. Such an object is
// never applied.
func Sealed(obj map[string]any) bool {
	if meta, ok := obj["sops"].(map[string]any); ok && (meta["mac"] != nil || meta["version"] != nil) {
		return true
	}
	if data, ok := obj["data"].(map[string]any); ok && obj["kind"] == "Secret" {
		for _, v := range data {
			text, _ := v.(string)
			if value, err := base64.StdEncoding.DecodeString(text); err == nil && sealedIn.Match(value) {
				return true
			}
		}
	}
	return holdsSealed(obj)
}

// holdsSealed looks for a sealed value anywhere below v.
func holdsSealed(v any) bool {
	switch v := v.(type) {
	case string:
		return len(v) > 20 && v[:4] == "ENC[" && sealedValue.MatchString(v)
	case map[string]any:
		for _, e := range v {
			if holdsSealed(e) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, holdsSealed)
	}
	return false
}
