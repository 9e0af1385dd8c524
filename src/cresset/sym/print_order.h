// An order of expressions which depends only on their structure and on the indices of their variables, not on the order
// of construction. Printed strings are therefore equal across pools. (Canonical forms are ordered by id, which is
// faster, but private to a pool.)
#pragma once

#include "sym/expr.h"

namespace cresset::sym {

// Returns <0, 0 or >0. Variables come first, by index; constants come last.
int compare_structure(const ExprPool& pool, ExprId a, ExprId b);
void sort_by_structure(const ExprPool& pool, ExprList& list);
void sort_by_structure(const ExprPool& pool, TermList& terms);  // by monomial; the constant last

}  // namespace cresset::sym
