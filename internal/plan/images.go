package plan

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Images are the container images that an object names, in their order.
func Images(u *unstructured.Unstructured) []string {
	var images []string
	for _, path := range [][]string{{"spec"}, {"spec", "template", "spec"}, {"spec", "jobTemplate", "spec", "template", "spec"}} {
		pod, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
		spec, _ := pod.(map[string]any)
		for _, list := range []string{"initContainers", "containers"} {
			containers, _ := spec[list].([]any)
			for _, c := range containers {
				container, _ := c.(map[string]any)
				if image, _ := container["image"].(string); image != "" {
					images = append(images, image)
				}
			}
		}
	}
	return images
}
