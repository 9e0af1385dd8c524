// The interface between the evaluator of CPython bytecode and its sessions. The header has C types only,
// so that C and C++ sources share it.
//
// Between cresset_eval_begin and cresset_eval_end, a thread evaluates its Python frames here instead of in CPython's
// own loop. The interpreter frames are CPython's own. The evaluator calls a hook of the table at each read and write of
// Python state, branch and call. Rules:
//
// - A read is reported after it happened, with its value. No hook changes the result of a read.
// - A write is reported before and after it happens.
// - A call, an operator and a truth test are reported before they happen. The hook may answer instead of the operation.
// - A null hook costs a compare. Hooks get borrowed references. A negative result of a hook means a Python exception,
//   which is raised at the current instruction, as if the operation had raised it.
// - The frames are at rest inside a hook: operands are still on the stack. A hook may read slots, and replace values by
//   equal objects (cresset_eval_image). CPython evaluates a hook's own Python code, unseen by the hooks.
#pragma once

#include <Python.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CressetActivation CressetActivation;

// The head of an object in place of a string nobody has inspected yet (symbolic_strings.h); str() of the object
// inspects it.
typedef struct {
  PyObject_HEAD int breaks_graph;  // inspection should cause a graph break: the operator or call is reported first
} CressetString;
extern PyTypeObject* cresset_string_type;  // NULL: no such type exists yet
extern PyTypeObject* cresset_symint_type;  // likewise; hooks are asked about a symbolic key of a dictionary
// Whether C code sets the attribute and may accept only a str, as for f.__name__.
int cresset_is_set_by_c(PyObject* owner, PyObject* name);

// The use of a frame's return value, when the value is not simply pushed on the caller's stack.
typedef enum {
  CRESSET_THEN_PUSH = 0,   // an ordinary call
  CRESSET_THEN_INSTANCE,   // __init__: must be None; the instance, continuation_value, is pushed
  CRESSET_THEN_DROP,       // __setattr__, __setitem__, __delitem__, ...: nothing is pushed
  CRESSET_THEN_BRANCH,     // __bool__ or __len__ at a conditional jump: `continuation_operand` is the jump
  CRESSET_THEN_NEXT,       // __next__ or a generator's frame in a for loop: StopIteration ends the loop
  CRESSET_THEN_SEND,       // a generator or coroutine under yield from, await
  CRESSET_THEN_STEP,       // a generator's frame under next(g), g.send(x), g.throw(e); the operand: the number of stack
                           // values of the call
  CRESSET_THEN_CLOSE,      // a generator's frame under g.close(); likewise
  CRESSET_THEN_ITERATOR,   // __iter__: must be an iterator
  CRESSET_THEN_BOOL,       // __contains__: truth of the result, inverted if continuation_operand
  CRESSET_THEN_ATTRIBUTE,  // a property, __getattr__, ...: an AttributeError gets the name, or __getattr__ is asked;
                           // continuation_value is the owner; the operand: 4 * the name's index, + 1 to ask,
                           // + 2 in LOAD_METHOD
  CRESSET_THEN_AGAIN,      // a list of all items of an iterator: the list replaces the iterator on the stack, and the
                           // instruction is repeated; the operand: its oparg
  CRESSET_THEN_RETURN_TO_C  // the frame was entered from C
} CressetContinuation;

// A frame in evaluation. The list runs from the innermost frame outwards and is valid while a hook runs.
struct CressetActivation {
  CressetActivation* caller;  // NULL in the outermost frame; frames evaluated by CPython in between are left out
  void* frame;                // _PyInterpreterFrame*
  PyObject* function;         // PyFunctionObject; use `code`, because the function's code may have been replaced since
  PyCodeObject* code;
  PyObject** stack_top;    // behind the values on the stack, including the operands of the instruction in progress
  int instruction;         // offset, in code units, of the instruction in progress (not of its EXTENDED_ARG)
  uint8_t entered_from_c;  // a C function lies between this frame and `caller`: frames cannot be resumed across it
  uint8_t is_generator;    // the frame of a generator or coroutine, which is `generator`
  uint8_t continuation;    // CressetContinuation
  uint8_t leave;           // set by cresset_eval_leave
  int continuation_operand;
  PyObject* continuation_value;  // owned; may be NULL
  PyObject* generator;           // borrowed; may be NULL
  void* user;                    // owned by the session; NULL when the frame starts
};

// ---- Reads ----------------------------------------------------------------------------------------------------------

typedef enum {
  CRESSET_IN_GLOBALS = 0,
  CRESSET_IN_BUILTINS,
  CRESSET_IN_LOCALS,   // a class body or module: LOAD_NAME found it in f_locals
  CRESSET_IN_NOTHING,  // NameError; value is NULL
  CRESSET_IN_MODULES,  // import: mapping is sys.modules, name as in the statement, value its result; NULL: failed
} CressetNamespace;

typedef enum {
  CRESSET_AT_INSTANCE = 0,  // in the owner's own __dict__ (or inline values)
  CRESSET_AT_MODULE,        // in the __dict__ of the module `owner`
  CRESSET_AT_SLOT,          // a __slots__ member or a C structure member of the instance; `found` is the descriptor
  CRESSET_AT_GETSET,        // computed by a C getter (tensor.shape, __class__, __dict__); `found` is the descriptor
  CRESSET_AT_TYPE,          // `found` in a class of type(owner)'s MRO, then bound (a method) or returned unchanged
  CRESSET_AT_CLASS,         // the owner is a class: `found` in a class of the owner's own MRO
  CRESSET_AT_PYTHON,        // Python code is about to compute it: `found` is the property, __get__, __getattr__ or
                            // __getattribute__; `value` is NULL, the call is reported as a call; but see `stores`
  CRESSET_AT_SUPER,         // the owner is a super object: `found` in a class behind the super object's own class
  CRESSET_AT_FOREIGN,       // the type's own C tp_getattro found it: nothing more is known
  CRESSET_AT_NOWHERE,       // AttributeError; value is NULL
} CressetAttributePlace;

typedef struct {
  PyObject* owner;
  PyObject* name;
  PyObject* value;  // the program's result; for a method call, the unbound function (`unbound` is set)
  PyObject* found;  // the raw entry of the MRO, before binding; NULL if there is none
  CressetAttributePlace place;
  uint8_t unbound;  // LOAD_METHOD did not make the bound method
  uint8_t asked;    // hasattr / getattr with a default: a miss raises nothing
  uint8_t stores;   // not 0: `found`, a __getattr__, needed no frame and searched so many of cresset_eval_stores
} CressetAttributeRead;

// The class with `found` in its __dict__; NULL if there is none.
PyTypeObject* cresset_attribute_holder(const CressetAttributeRead* read);
// The class whose MRO a super object searches (__self_class__), borrowed; NULL for an unbound super object.
PyTypeObject* cresset_super_class(PyObject* super);

// ---- Writes ---------------------------------------------------------------------------------------------------------

typedef enum {
  CRESSET_WRITE_ATTRIBUTE = 0,  // owner.key = value
  CRESSET_WRITE_GLOBAL,         // owner is the globals dictionary
  CRESSET_WRITE_NAME,           // owner is f_locals (class body, module)
  CRESSET_WRITE_CELL,           // owner is the cell; key is NULL
  CRESSET_WRITE_ITEM,           // owner[key] = value
  CRESSET_WRITE_IN_PLACE,       // owner op= value; key is NULL; `operation` is the BINARY_OP argument (NB_INPLACE_*)
  CRESSET_WRITE_DISPLAY,  // a display or comprehension adds an item: the owner is only on the stack; reported only
                          // before the write, key and value are NULL
} CressetWriteKind;

typedef struct {
  CressetWriteKind kind;
  PyObject* owner;
  PyObject* key;
  PyObject* value;  // NULL: a deletion
  int operation;
} CressetWrite;

// ---- Operations that a hook may answer ------------------------------------------------------------------------------

typedef enum {
  CRESSET_FAIL = -1,    // an exception is set
  CRESSET_RUN = 0,      // execute the operation (the hook may have caused a graph break first)
  CRESSET_RESULT = 1,   // *result, a new reference, is the result
  CRESSET_NATIVE = 2,   // calls and frames only: CPython executes the operation and its callees, unseen by the hooks
  CRESSET_INSTEAD = 3,  // calls, next(), str of values only: call *result, which is borrowed, with the same arguments
} CressetAction;

typedef struct {
  PyObject* callable;
  PyObject* const* args;  // positional, then the values of kwnames; a method's self is the first
  Py_ssize_t nargs;       // the positional arguments
  PyObject* kwnames;      // tuple or NULL
  uint8_t evaluated;      // the evaluator runs the Python function's frame (the callable is not a C function)
} CressetCall;

// The numbers of keyword arguments and of all arguments.
static inline Py_ssize_t cresset_count_named(const CressetCall* call) {
  return call->kwnames != NULL ? PyTuple_GET_SIZE(call->kwnames) : 0;
}
static inline Py_ssize_t cresset_count_arguments(const CressetCall* call) {
  return call->nargs + cresset_count_named(call);
}

enum { CRESSET_AS_BOOL = 0x100 };
typedef enum {
  CRESSET_OP_BINARY = 0,  // operation: NB_*; operands left, right. In-place operators are reported as writes too
  CRESSET_OP_UNARY,       // operation: '+', '-', '~' ('!' is reported as a truth test)
  CRESSET_OP_COMPARE,     // operation: Py_LT ... Py_GE, | CRESSET_AS_BOOL where the truth of the result is wanted
  CRESSET_OP_SUBSCRIPT,   // container[key]
  CRESSET_OP_CONTAINS,    // operands container, item; operation: 1 for `not in`; *result is a bool
  CRESSET_OP_FORMAT,  // f"{value!r:spec}"; operands value, spec or NULL; operation: the conversion (0, 's', 'r', 'a')
  CRESSET_OP_ITER,    // iter(value)
  CRESSET_OP_NEXT,    // next(iterator) in a for loop
  CRESSET_OP_UNPACK,  // a, b = value; operation: the number of names; not reported for an exact tuple or list
  CRESSET_OP_HASH,    // a value becomes a key of a dict or set display; the result is ignored
} CressetOperatorKind;

typedef struct {
  CressetOperatorKind kind;
  int operation;
  PyObject* operands[2];  // the second may be NULL
} CressetOperator;

// ---- The table ------------------------------------------------------------------------------------------------------

typedef struct CressetEvalHooks {
  void* session;

  // Not 0: the number of the graph segment. A new number means that names must be reported again (CRESSET_REPORTED).
  uint64_t reported;
  // Reads: 0, or -1 with an exception set. CRESSET_REPORTED is for a global, a builtin or a module's name: the same
  // instruction need not report the read again while the dictionaries stay unchanged.
  int (*read_name)(void*, CressetActivation*, CressetNamespace where, PyObject* mapping, PyObject* name,
                   PyObject* value);
  int (*read_cell)(void*, CressetActivation*, PyObject* cell, int slot, PyObject* value);  // slot: index in localsplus
  // For a value computed by C code. CRESSET_READ_AS_CALL: the result of `data_of` replaces the value;
  // CRESSET_READ_BY_GETATTR: the result of `attribute_of` replaces it.
  int (*read_attribute)(void*, CressetActivation*, const CressetAttributeRead*);
  // The item, as C code returned it; value is NULL where there was none.
  int (*read_item)(void*, CressetActivation*, PyObject* container, PyObject* key, PyObject* value);
  // All items are about to be read: unpacking, star arguments, displays with stars, mapping patterns. The subject of a
  // class pattern is reported too.
  int (*read_contents)(void*, CressetActivation*, PyObject* container);
  int (*read_length)(void*, CressetActivation*, PyObject* container,
                     Py_ssize_t length);  // len, truth, unpack, patterns
  int (*read_iterator)(void*, CressetActivation*, PyObject* iterable, PyObject* iterator);  // after iter(iterable)
  int (*read_next)(void*, CressetActivation*, PyObject* iterator, PyObject* value);         // value NULL: exhausted
  int (*read_contains)(void*, CressetActivation*, PyObject* container, PyObject* item, int result);
  int (*read_compare)(void*, CressetActivation*, PyObject* left, PyObject* right, int operation, PyObject* result);
  int (*read_is)(void*, CressetActivation*, PyObject* left, PyObject* right, int result);
  // A parameter took its value from function.__defaults__[index] (keyword NULL) or __kwdefaults__[keyword]. The
  // activation is the caller's.
  int (*read_default)(void*, CressetActivation*, PyObject* function, Py_ssize_t index, PyObject* keyword,
                      PyObject* value);

  // Writes: 0, or -1 with an exception set. after_write is not called when the write raised. 1 for the store of an
  // item: the hook has done it. CRESSET_WRITE_AS_CALL: `assign` is called instead, or `set_item` for an item.
  int (*before_write)(void*, CressetActivation*, const CressetWrite*);
  int (*after_write)(void*, CressetActivation*, const CressetWrite*);

  // Truth of a value, except for bool, None, int, float, str and exact lists, tuples, dicts and sets: read_length
  // reports these where their length decides. Answer: 0 or 1, CRESSET_TRUTH_RUN to ask the object, -1 with an
  // exception.
  int (*truth)(void*, CressetActivation*, PyObject* value);
  // Whether two objects are identical. Answers as truth does.
  int (*same)(void*, CressetActivation*, PyObject* left, PyObject* right);

  // Every call of the program. The stack still holds callable and arguments. When the call is `evaluated`, enter_frame
  // follows.
  CressetAction (*before_call)(void*, CressetActivation*, const CressetCall*, PyObject** result);
  // After a call that is not `evaluated`. *result is NULL when the call raised `exception`. The hook may exchange
  // *result, or set it in place of the exception. 0, or -1 with an exception set.
  int (*after_call)(void*, CressetActivation*, const CressetCall*, PyObject** result, PyObject* exception);
  // Not called when all operands are exact int, float, bool, str or None, unless tells_all is set.
  uint8_t tells_all;  // may be set, and taken back, while frames are evaluated
  CressetAction (*before_operator)(void*, CressetActivation*, const CressetOperator*, PyObject** result);

  // A frame that was entered from C, or whose result decides a branch, returns `value`, which is no plain number or
  // string. The hook returns a new reference to its replacement, or NULL with an exception set.
  PyObject* (*return_to_c)(void*, CressetActivation*, PyObject* value);

  // Before every instruction; prefixes and KW_NAMES count as part of the next instruction. Slow; for tests and
  // debuggers.
  int (*step)(void*, CressetActivation*);

  // A frame continues in CPython's own loop because a tool watches its code: the rest of the frame is not reported.
  void (*unseen)(void*);

  // A frame starts or is resumed (activation->instruction < 0: it starts). CRESSET_RUN or CRESSET_NATIVE.
  CressetAction (*enter_frame)(void*, CressetActivation*);
  // The frame returned, yielded, or raised (value NULL, an exception set: leave it set). 0, or -1 with an exception
  // set.
  int (*leave_frame)(void*, CressetActivation*, PyObject* value);
} CressetEvalHooks;

#define CRESSET_TRUTH_RUN 2
#define CRESSET_WRITE_AS_CALL 2
#define CRESSET_REPORTED 1
#define CRESSET_READ_AS_CALL 2
#define CRESSET_READ_BY_GETATTR 3

// ---- Entry points ---------------------------------------------------------------------------------------------------

// NULL if the running CPython can be evaluated; else the reason, in one sentence.
const char* cresset_eval_unsupported(void);

// A call of an object of this type becomes a call of the result of `inside` (borrowed).
void cresset_eval_see_through(PyTypeObject* type, PyObject* (*inside)(PyObject*));
// What such an object stands for; NULL for other objects. Borrowed.
PyObject* cresset_eval_inside(PyObject* object);
// A call of a function with this code becomes a call of the content of the closure's cell at this index.
void cresset_eval_see_through_wrappers(PyObject* code, Py_ssize_t cell);
// The function inside a registered wrapper or a wrapper of torch.compile (borrowed); else NULL.
PyObject* cresset_eval_wrapped(PyObject* callable);

// Registers a class's __getattr__ with this code and without closure or attributes. The function looks a name up in
// dictionaries of the instance, in the order of `names` (a tuple of strings), and raises where all miss. The evaluator
// returns the value without a frame.
void cresset_eval_looks_in_stores(PyObject* code, PyObject* names);
PyObject* cresset_eval_stores(void);  // the names, borrowed
// The value under an exact str in a dictionary, as PyDict_GetItemWithError. A name often has the same position in the
// dictionaries of many objects, so the last position is tried first.
PyObject* cresset_eval_item(PyObject* dict, PyObject* name);

// Starts and ends evaluating new frames of this thread. Nests: the innermost hooks run. 0, or -1 with an exception.
int cresset_eval_begin(const CressetEvalHooks* hooks);
void cresset_eval_end(void);
// Between pause and unpause, frames of this thread run in CPython's evaluator (cresset's code, not the program's).
void cresset_eval_pause(void);
void cresset_eval_unpause(void);

// Saves and clears the evaluation state of this thread; take_back restores it. NULL: nothing to save, or no memory.
void* cresset_eval_suspend(void);
void cresset_eval_take_back(void* aside);

// Calls with every frame evaluated; used between begin and end. args: tuple; kwargs: dict or NULL.
PyObject* cresset_eval_call(PyObject* callable, PyObject* args, PyObject* kwargs);

// Visits the objects in the youngest generation; if *mark is not NULL, only the objects made since *mark was set. mark:
// an object owned by the caller from then on, at the end of the generation.
void cresset_eval_visit_new_objects(PyObject** mark, void (*visit)(void*, PyObject*), void* arg);

// Whether the Python object is the frame object of the activation.
int cresset_eval_is_frame(const CressetActivation* activation, PyObject* frame_object);

// Whether a tool watches all code of this thread: a trace or profile function, a tool of sys.monitoring.
int cresset_eval_is_watched(void);

// The innermost activation of this thread, or NULL.
CressetActivation* cresset_eval_current(void);
// Whether the code may catch an exception of the instruction: an `except` is around it, or a `finally` keeps it.
int cresset_may_catch(PyCodeObject* code, int instruction);

// A statement `if condition: x = x.method(a, b)` and nothing else: the call skipped by the jump in progress. Arguments
// are locals (a slot) or constants (slot -1).
enum { CRESSET_SPARED_ARGUMENTS = 8 };
typedef struct {
  int slot;          // x
  PyObject* method;  // its name
  int count;
  int slots[CRESSET_SPARED_ARGUMENTS];
  PyObject* constants[CRESSET_SPARED_ARGUMENTS];
} CressetSparedCall;
// 0 when the truth in question decides anything else.
int cresset_eval_spared_call(const CressetActivation* activation, CressetSparedCall* out);

typedef enum {
  CRESSET_LEAVE_FRAME = 0,  // this frame continues in CPython's evaluator; its callees are evaluated here
  CRESSET_LEAVE_ALL,        // all frames of this thread continue there, until cresset_eval_end
} CressetLeave;
void cresset_eval_leave(CressetActivation* activation, CressetLeave what);

// The content of a frame. Pointers into live frames are borrowed and valid while the hook runs. The hook may replace
// slots there: it releases the old reference, and the frame owns the new one. The old object must live until the
// operation in progress has ended, which may use it.
typedef struct {
  PyObject* function;
  PyCodeObject* code;
  PyObject* names;   // f_locals of class bodies and modules; NULL in functions
  PyObject** slots;  // localsplus: parameters, locals, cells, free variables; entries may be NULL
  int slot_count;
  PyObject** stack;  // from the bottom; entries may be NULL
  int stack_depth;
  int last;              // evaluation continues at the code unit after this one; -1: at the start
  uint8_t continuation;  // as in the activation
  int continuation_operand;
  PyObject* continuation_value;
  PyObject* generator;  // the generator whose frame this is; NULL in functions. To cresset_eval_resume: a suspended
                        // generator, whose own frame continues; slots and stack are ignored
  PyObject* handled;    // the exception being handled (a bare `raise` raises it) in the innermost frame, and in frames
                        // that called a generator; else NULL
} CressetFrameImage;

// Fills `image` from a live frame. For a frame with a callee in progress, `last` is the end of its call. For the
// innermost frame, CRESSET_BEFORE gives the state before the instruction in progress (prefixes and KW_NAMES are
// evaluated again). CRESSET_AFTER gives the state after it, operands popped, result not yet pushed. The entry of a with
// statement has no BEFORE once its call is reported: __exit__ has replaced the manager on the stack.
typedef enum { CRESSET_BEFORE = 0, CRESSET_AFTER } CressetPoint;
void cresset_eval_image(const CressetActivation* activation, CressetPoint point, CressetFrameImage* image);

// Whether a suspended generator counts as running, because its delegate is being closed, or thrown into.
int cresset_eval_is_being_closed(PyObject* generator);

// The image of a generator, coroutine or asynchronous generator that is not running. 0, 1 when it is finished, or -1
// when it runs.
int cresset_eval_generator_image(PyObject* generator, CressetFrameImage* image);
// A new suspended generator from an image of a suspended or running generator. The image's `generator` is ignored.
PyObject* cresset_eval_rebuild_generator(const CressetFrameImage* image);
// The same in two steps. The first makes an empty generator of this code. The second gives an empty or suspended
// generator the image's contents (NULL: it is finished). No code of the program runs.
PyObject* cresset_eval_new_generator(PyCodeObject* code);
int cresset_eval_set_generator(PyObject* generator, const CressetFrameImage* image);
// A slot or stack value of a generator; `index` counts through slots, then stack. A running generator is allowed if its
// frame is at rest. NULL when the index is too large, or the generator is finished.
PyObject** cresset_eval_generator_slot(PyObject* generator, int index);
// The places of key and value of a dictionary's entry. An equal key or another value may be stored there, without the
// program's `__hash__` or `__eq__`. 1, with *value NULL for an unused entry; 0 behind the last entry; -1 for a
// namespace, whose keys are strings alone, and for a dictionary with watchers.
int cresset_eval_dict_entry(PyObject* dict, Py_ssize_t index, PyObject*** key, PyObject*** value);
int cresset_eval_dict_changed(PyObject* dict);  // afterwards: renews the dictionary's version; -1 out of memory

// The slots (co_nlocalsplus of them) still read by a frame when it continues behind `last`, or in the handler of
// that instruction's exception: 1 or 0 each. Cells always count as read. -1 when the code cannot be analyzed.
int cresset_eval_live_slots(PyCodeObject* code, int last, uint8_t* live);
// Whether the frame may then replace or delete the content of the cell in the slot.
int cresset_eval_may_change_cell(PyCodeObject* code, int last, int slot);

// Whether the frame then drops the value on top of its stack at once.
int cresset_eval_drops_value(PyCodeObject* code, int last);

// Rebuilds frames, outermost first, and evaluates from the innermost to the end of the outermost, whose result is
// returned. Each result goes to the frame around it. References of the images are copied, not stolen. `value`: pushed
// on the innermost stack first; may be NULL. `exception`: raised there instead; may be NULL. natively: in CPython's
// evaluator (callees are evaluated here only if the thread is between begin and end). contents: NULL, or the reference
// that keeps the objects of the images. It is dropped once the frames have references of their own, so that objects die
// when the program drops them.
PyObject* cresset_eval_resume(const CressetFrameImage* images, int count, PyObject* value, PyObject* exception,
                              int natively, PyObject** contents);

#ifdef __cplusplus
}
#endif
