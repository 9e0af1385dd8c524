#include "sym/z3_library.h"

#include <dlfcn.h>

#include <initializer_list>
#include <string>

#include "base/options.h"

// Z3's functions as prover.cpp calls them, through the classes of z3++.h. A function that is missing here is an
// undefined symbol of every program that links the prover.
// clang-format off: it indents each line further.
#define CRESSET_Z3_FUNCTIONS(X)                                                                                       \
  X(ast_vector_dec_ref) X(ast_vector_get) X(ast_vector_inc_ref) X(ast_vector_size) X(dec_ref) X(del_config)           \
  X(del_context) X(get_app_decl) X(get_ast_kind) X(get_decl_kind) X(get_error_code) X(get_error_msg)                  \
  X(get_numeral_int64) X(get_sort) X(get_sort_kind) X(inc_ref) X(is_re_sort) X(is_seq_sort) X(mk_add) X(mk_and)       \
  X(mk_bvadd) X(mk_bvmul) X(mk_bvneg) X(mk_bvsdiv) X(mk_bvsge) X(mk_bvsgt) X(mk_bvsle) X(mk_bvslt) X(mk_bvsmod)       \
  X(mk_bvsub) X(mk_concat) X(mk_config) X(mk_const) X(mk_context_rc) X(mk_distinct) X(mk_div) X(mk_eq) X(mk_false)    \
  X(mk_fpa_add) X(mk_fpa_div) X(mk_fpa_geq) X(mk_fpa_gt) X(mk_fpa_leq) X(mk_fpa_lt) X(mk_fpa_mul) X(mk_fpa_neg)       \
  X(mk_fpa_rna) X(mk_fpa_rne) X(mk_fpa_rtn) X(mk_fpa_rtp) X(mk_fpa_rtz) X(mk_fpa_sub) X(mk_ge) X(mk_gt) X(mk_int)     \
  X(mk_int64) X(mk_int_sort) X(mk_ite) X(mk_le) X(mk_lt) X(mk_mod) X(mk_mul) X(mk_not) X(mk_or) X(mk_params)          \
  X(mk_re_concat) X(mk_re_union) X(mk_seq_concat) X(mk_solver) X(mk_string_symbol) X(mk_sub) X(mk_true)               \
  X(mk_unary_minus) X(model_dec_ref) X(model_eval) X(model_inc_ref) X(params_dec_ref) X(params_inc_ref)               \
  X(params_set_uint) X(set_ast_print_mode) X(set_error_handler) X(solver_assert) X(solver_check) X(solver_dec_ref)    \
  X(solver_get_assertions) X(solver_get_model) X(solver_inc_ref) X(solver_pop) X(solver_push) X(solver_set_params)
// clang-format on

// Each function is a jump to the address that open_z3 found. A jump needs no types, so neither does this file.
#define CRESSET_Z3_JUMP(name)                                                                                   \
  extern "C" {                                                                                                  \
  __attribute__((visibility("hidden"), used)) void* cresset_z3_##name = nullptr;                                \
  }                                                                                                             \
  asm(".pushsection .text\n.globl Z3_" #name "\n.hidden Z3_" #name "\n.type Z3_" #name ", @function\nZ3_" #name \
      ":\n\tjmp *cresset_z3_" #name "(%rip)\n.size Z3_" #name ", .-Z3_" #name "\n.popsection\n");
CRESSET_Z3_FUNCTIONS(CRESSET_Z3_JUMP)
#undef CRESSET_Z3_JUMP

namespace cresset::sym {
namespace {

struct Z3Function {
  const char* name;
  void** address;
};

#define CRESSET_Z3_ENTRY(name) {"Z3_" #name, &cresset_z3_##name},
constexpr Z3Function kZ3Functions[] = {CRESSET_Z3_FUNCTIONS(CRESSET_Z3_ENTRY)};
#undef CRESSET_Z3_ENTRY

void* open_z3_file() {
  if (const std::string path = option(Option::Z3_LIBRARY); !path.empty())
    return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  for (const char* name : {"libz3.so.4", "libz3.so"}) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

// False if a function is missing: a version of Z3 with another interface.
bool find_z3_functions(void* library) {
  for (const Z3Function& function : kZ3Functions) {
    *function.address = dlsym(library, function.name);
    if (*function.address == nullptr) return false;
  }
  return true;
}

}  // namespace

bool open_z3() {
  static const bool open = [] {
    void* const library = open_z3_file();
    return library != nullptr && find_z3_functions(library);
  }();
  return open;
}

}  // namespace cresset::sym
