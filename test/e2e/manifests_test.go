package e2e

import "fmt"

// application is an Application that syncs by itself, prunes and heals. More
// lines for its spec come with extra, indented by two.
func application(name, path, extra string) string {
	return fmt.Sprintf(`apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: %s
spec:
  project: default
  source:
    repoURL: ${REPO}
    targetRevision: main
    path: %s
  destination:
    name: alpha
    namespace: ${NS}
  syncPolicy:
    automated:
      prune: true
      selfHeal: true
%s`, name, path, extra)
}

func configMap(name, value string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata:
  name: %s
data:
  value: %q
`, name, value)
}

func deployment(name string, replicas int) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
spec:
  replicas: %[2]d
  selector:
    matchLabels:
      app: %[1]s
  template:
    metadata:
      labels:
        app: %[1]s
    spec:
      containers:
        - name: web
          image: registry.example/web:1.0.0
`, name, replicas)
}

func service(name string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Service
metadata:
  name: %[1]s
spec:
  selector:
    app: %[1]s
  ports:
    - port: 80
      targetPort: 8080
`, name)
}
