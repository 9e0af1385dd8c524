#include "frontend/eval/equivalents.h"

CressetEquivalents cresset_equivalents;

void cresset_eval_use(const CressetEquivalents* equivalents) { cresset_equivalents = *equivalents; }
