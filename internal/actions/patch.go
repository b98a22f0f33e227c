package actions

import "reflect"

// difference is the JSON merge patch that makes before into after. A list that is
// empty where before has an empty map, or none, is no change: Lua has one table for both.
func difference(before, after map[string]any) map[string]any {
	patch := map[string]any{}
	for k, was := range before {
		is, kept := after[k]
		switch {
		case !kept:
			patch[k] = nil
		case emptied(was, is):
			if m, ok := was.(map[string]any); ok && len(m) > 0 {
				patch[k] = difference(m, map[string]any{})
			}
		case !reflect.DeepEqual(was, is):
			old, both := was.(map[string]any)
			if now, ok := is.(map[string]any); ok && both {
				if inner := difference(old, now); len(inner) > 0 {
					patch[k] = inner
				}
				continue
			}
			patch[k] = is
		}
	}
	for k, is := range after {
		list, isList := is.([]any)
		if _, had := before[k]; !had && (!isList || len(list) > 0) {
			patch[k] = is
		}
	}
	return patch
}

// emptied reports whether a map became what may be an empty map.
func emptied(was, is any) bool {
	_, isMap := was.(map[string]any)
	list, isList := is.([]any)
	return isMap && isList && len(list) == 0
}
