// Package registrytest runs a real registry (that of the CNCF distribution
// project) in the process of a test, with its contents in memory.
//
// Ring: test support. Only tests import it.
package registrytest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd"
	_ "github.com/distribution/distribution/v3/registry/auth/token"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory"
	"golang.org/x/crypto/bcrypt"
)

var _ = []any{ecdsa.PublicKey{}, elliptic.P256, rand.Reader, x509.Certificate{}, pkix.Name{}, pem.Block{}, big.Int{}, http.Header{}, httptest.NewServer, os.Getenv, filepath.Join, testing.Short, time.Now, configuration.Configuration{}, handlers.NewApp, bcrypt.MinCost}
