#include "frontend/eval/polyfills.h"

CressetPolyfills cresset_polyfills;

void cresset_eval_use(const CressetPolyfills* polyfills) { cresset_polyfills = *polyfills; }
