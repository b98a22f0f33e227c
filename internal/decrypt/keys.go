package decrypt

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"filippo.io/age"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/rutterhq/rutter"
)

// httpClient names what reaches AWS and Vault; nil means their own.
type httpClient = *http.Client

// keyring is everything that SetKeys was given, as one value.
type keyring struct {
	generation string
	sets       []*keySet
}

// of returns the keys that a project may use.
func (r *keyring) of(project string) []*keySet {
	var sets []*keySet
	for _, s := range r.sets {
		if s.project == "" || s.project == project {
			sets = append(sets, s)
		}
	}
	return sets
}

// keySet is what one Secret holds, ready for use.
type keySet struct {
	name    string
	project string

	age   []age.Identity
	pgp   openpgp.EntityList
	vault *vaultToken
	aws   aws.CredentialsProvider
	gcp   []byte
	azure azcore.TokenCredential
}

// Names of a Secret's keys that are not file names (Flux' forms, and the one
// that says where a Vault token may be sent).
const (
	keyVaultToken   = "sops.vault-token"
	keyVaultAddress = "sops.vault-address"
	keyAWS          = "sops.aws-kms"
	keyGCP          = "sops.gcp-kms"
	keyAzure        = "sops.azure-kv"
)

// parseKey reads a Secret. The set holds what could be read, whatever the error says.
func parseKey(k rutter.DecryptionKey, hc httpClient) (*keySet, error) {
	set := &keySet{name: k.Name, project: k.Project}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(k.Data)) {
		if err := set.add(name, k.Data, hc); err != nil {
			problems = append(problems, rutter.Errorf(rutter.CodeInvalid, "Secret %s, key %q: %w", k.Name, name, err))
		}
	}
	if len(k.Data) == 0 {
		problems = append(problems, rutter.Errorf(rutter.CodeInvalid, "Secret %s holds no keys: put them under <name>.agekey, <name>.asc, %s, %s, %s or %s",
			k.Name, keyVaultToken, keyAWS, keyGCP, keyAzure))
	}
	return set, errors.Join(problems...)
}

// add reads one entry of a Secret. Errors never quote it.
func (s *keySet) add(name string, data map[string][]byte, hc httpClient) (err error) {
	value := data[name]
	switch {
	case strings.HasSuffix(name, ".agekey"):
		var ids []age.Identity
		ids, err = parseAge(value)
		s.age = append(s.age, ids...)
	case strings.HasSuffix(name, ".asc"):
		var keys openpgp.EntityList
		keys, err = parsePGP(value)
		s.pgp = append(s.pgp, keys...)
	case name == keyVaultToken:
		s.vault, err = parseVault(value, data[keyVaultAddress])
	case name == keyVaultAddress:
		if len(data[keyVaultToken]) == 0 {
			return rutter.Errorf(rutter.CodeInvalid, "names where a Vault token may be sent, but there is no %s", keyVaultToken)
		}
	case name == keyAWS:
		s.aws, err = parseAWS(value)
	case name == keyGCP:
		s.gcp, err = parseGCP(value)
	case name == keyAzure:
		s.azure, err = parseAzure(value, hc)
	case name == SecretProject:
	default:
		return rutter.Errorf(rutter.CodeInvalid, "is no form of a key: use <name>.agekey, <name>.asc, %s, %s, %s or %s",
			keyVaultToken, keyAWS, keyGCP, keyAzure)
	}
	return err
}
