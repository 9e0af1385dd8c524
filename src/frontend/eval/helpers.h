// Long or rare parts of the opcodes. All return NULL, 0 or -1 with an exception set unless stated otherwise.
#pragma once

#include "frontend/eval/changers.h"
#include "frontend/eval/state.h"

// ---- names.c: messages of failed look-ups ---------------------------------------------------------------------------
void cresset_unbound_local(PyCodeObject* code, int slot);
void cresset_unbound_cell(PyCodeObject* code, int slot);
void cresset_undefined_name(PyObject* name);
// A name in a mapping, which may be a dict or not. New reference; NULL without exception when the name is missing.
PyObject* cresset_mapping_get(PyObject* mapping, PyObject* name);
// Globals, then builtins. New reference; NULL with NameError.
PyObject* cresset_global(Frame* frame, PyObject* name, CressetNamespace* where);

// ---- raise.c --------------------------------------------------------------------------------------------------------
// `raise exc from cause`; steals both. 1: an exception was raised again, and no traceback entry is due; 0: an exception
// is set.
int cresset_raise(PyObject* exception, PyObject* cause);
int cresset_check_except_type(PyObject* type);
void cresset_restore_exception(PyObject* value);  // steals; keeps its traceback
// Both borrow their arguments. CPython itself executes these instructions of `except*`.
PyObject* cresset_prepare_reraise_star(PyObject* original, PyObject* raised);
// Any instruction of type parameters (3.12), by its operands and its number. With one operand, second equals first.
PyObject* cresset_intrinsic(int operands, int number, PyObject* first, PyObject* second);
int cresset_match_exception_group(PyObject* value, PyObject* type, PyObject** match, PyObject** rest);
void cresset_add_traceback(PyThreadState* tstate, Frame* frame);

// ---- unpack.c -------------------------------------------------------------------------------------------------------
// Writes `before` items, then a list and `after` items if after >= 0, downwards from `end`, new references. The lowest
// place belongs to the iterable: its last content is *taken, which the caller drops. 0, or -1: the place is unchanged.
int cresset_unpack(PyObject* iterable, int before, int after, PyObject** end, PyObject** taken);
int cresset_list_extend(PyObject* list, PyObject* iterable);
int cresset_dict_update(PyObject* dict, PyObject* mapping);
int cresset_merge_keywords(PyObject* function, PyObject* dict, PyObject* mapping);
PyObject* cresset_star_arguments(PyObject* function, PyObject* iterable);
PyObject* cresset_join(PyObject* const* parts, Py_ssize_t count);
PyObject* cresset_format(PyObject* value, PyObject* spec, int conversion);

// ---- match.c --------------------------------------------------------------------------------------------------------
// Tuples; NULL without exception when the pattern does not match (match_keys: None).
PyObject* cresset_match_class(const CressetEvalHooks* hooks, CressetActivation* activation, PyObject* subject,
                              PyObject* type, Py_ssize_t positional, PyObject* names);
PyObject* cresset_match_keys(PyObject* mapping, PyObject* keys);

// ---- import.c -------------------------------------------------------------------------------------------------------
PyObject* cresset_import_name(PyThreadState* tstate, Frame* frame, PyObject* name, PyObject* from, PyObject* level);
PyObject* cresset_import_from(PyObject* module, PyObject* name);
int cresset_import_star(PyObject* names, PyObject* module);
int cresset_setup_annotations(Frame* frame);
int cresset_print_expression(PyObject* value);

// ---- generators.c ---------------------------------------------------------------------------------------------------
PyObject* cresset_awaitable(PyObject* object, int after_with);  // after_with: 0, 1 (__aenter__), 2 (__aexit__)
PyObject* cresset_async_iterator(PyObject* object);
PyObject* cresset_async_next(PyObject* iterator);
// Puts a generator back whose frame ran in the loop of its consumer: suspended (1 is returned), or finished and
// cleared. failed: an exception is set.
int cresset_leave_generator(PyThreadState* tstate, Frame* frame, int failed);
// Whether an exception can be raised in the generator's frame: the generator is suspended, and does not delegate.
int cresset_may_throw_into(PyObject* generator);
// Sets the exception that throw(*args) raises; no args: GeneratorExit. 0, or -1 with the exception of a wrong call.
int cresset_set_thrown(PyObject* const* args, Py_ssize_t nargs);
// Makes the exception handled by the generator the context of the raised exception. The generator's level of handled
// exceptions must be the innermost.
void cresset_chain_thrown(PyObject* generator);
// The result of close() when the frame has ended, or yielded. Steals `result`; NULL: an exception is set.
PyObject* cresset_closed(PyObject* generator, PyObject* result, int yielded);
PyObject* cresset_special(PyObject* object, PyObject* name, const char* protocol, const char* missed);

// ---- attribute.c ----------------------------------------------------------------------------------------------------
// Loading owner.name. Where Python code has to run for it, the code is named instead of run.
typedef struct {
  PyObject* value;   // new reference; NULL: an exception is set, or `python` is the function to call
  PyObject* python;  // new reference or NULL: function to call with (owner) or (owner, name)
  int with_name;     // pass the name too
  int then_missing;  // if it raises AttributeError, __getattr__ is to be asked
  int unbound;       // value is a function to be called with the owner as first argument
} AttributeResult;
// method: an unbound function may be returned. told: fill in `read` for the hook (without it, `read` may be NULL).
void cresset_load_attribute(PyObject* owner, PyObject* name, int method, CressetAttributeRead* read,
                            AttributeResult* result);
// Adds name and object to an AttributeError, as CPython does for its suggestions. Ignores any other exception.
void cresset_name_attribute_error(PyObject* owner, PyObject* name);
PyObject* cresset_missing_attribute(PyObject* owner);  // type(owner).__getattr__, new reference
// owner.name = value where the instance has the attribute inline and its class has no such name. 1: done.
int cresset_replace_attribute(PyObject* owner, PyObject* name, PyObject* value);
// The Python function that type(object) defines for a special method, borrowed; NULL if it is no plain function.
PyObject* cresset_python_method(PyObject* object, PyObject* name);

// ---- resume.c -------------------------------------------------------------------------------------------------------
// A frame on the data stack with the image's contents. NULL: an exception is set.
Frame* cresset_push_image(PyThreadState* tstate, const CressetFrameImage* image);

// ---- call.c ---------------------------------------------------------------------------------------------------------
enum { kMaxHead = 4 };
// A callable decomposed until a Python function is reached.
typedef struct {
  PyObject* function;        // borrowed; a PyFunctionObject
  PyObject* head[kMaxHead];  // arguments in front of the call's own, borrowed
  int head_count;
  PyObject* partial_args;  // arguments of functools.partial, between head and the call's own; owned or NULL
  PyObject* partial_dict;  // owned or NULL
  PyTypeObject* make;      // a class to be instantiated: function is its __init__
  PyObject* instance;      // made by cresset_make_instance; owned
} Callee;
// 1: `callee` describes how to evaluate the call; 0: call as C does; -1: an exception is set. Has no side effects.
int cresset_resolve(PyObject* callable, Callee* callee);
// The new instance goes in front of head. 1: run __init__; 0: skip it, `instance` is the result; -1.
int cresset_make_instance(Callee* callee, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);
void cresset_release_callee(Callee* callee);

PyObject* cresset_call_init(const Callee* callee, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);
// Keywords of f(*args, **kwargs) in vectorcall's form: *flat holds `args`, then all values, *kwnames the names. *flat
// is NULL if a keyword is no string: the callee will report it. 0 or -1. The objects in flat stay alive, whatever
// becomes of the two.
int cresset_flatten_call(PyObject* args, PyObject* kwargs, PyObject*** flat, PyObject** kwnames);
// The same after a hook may have replaced the arguments.
int cresset_flatten_again(PyObject* args, PyObject* kwargs, PyObject*** flat, PyObject** kwnames);
void cresset_free_flat(PyObject** flat, Py_ssize_t nargs, Py_ssize_t count);  // count: of keywords

typedef struct {
  PyObject* const* head;
  Py_ssize_t head_count;
  PyObject* partial_args;  // NULL or tuple, between head and args
  PyObject* const* args;
  Py_ssize_t nargs;
  PyObject* kwnames;       // NULL or tuple; values behind args[nargs]
  PyObject* partial_dict;  // NULL or dict: keywords that kwnames override
} CallArguments;
// A frame for the call, arguments bound. NULL without exception: the arguments do not fit (call as C does, for the
// message).
Frame* cresset_bind(PyThreadState* tstate, PyObject* function, const CallArguments* call);
// Calls read_default for each parameter with its default; used after cresset_bind.
int cresset_tell_defaults(const CressetEvalHooks* hooks, CressetActivation* activation, PyObject* function,
                          const CallArguments* call);
