// An order of expressions that depends on their structure and their variables' indices only, not on when they were
// built: text is the same from pool to pool. (Canonical forms are ordered by id, which is faster, and private.)
#pragma once

#include "sym/expr.h"

namespace cresset::sym {

// <0, 0, >0. Variables by index, before everything else; constants last.
int compare_structure(const ExprPool& pool, ExprId a, ExprId b);
void sort_by_structure(const ExprPool& pool, ExprList& list);
void sort_by_structure(const ExprPool& pool, TermList& terms);  // by monomial; the constant last

}  // namespace cresset::sym
