// The evaluator of CPython bytecode and those who watch it: C types only, so that C and C++ sources share this header.
//
// While a thread is between cresset_eval_begin and cresset_eval_end, every Python frame that starts or is resumed in it
// is evaluated here instead of in CPython's own loop, on the same interpreter frames. At each read and write of Python
// state, branch and call the evaluator calls a hook of the table. Rules:
//
// - Reads are told after they happened, with the value that was read: no hook changes what a read gives.
// - Writes are told before and after they happen for real.
// - Calls, operators and truth are told before; the hook may answer in place of the operation.
// - A null hook costs a compare. Hooks get borrowed references. A hook that returns a negative number has set a Python
//   exception: it is raised at the current instruction, as if the operation had raised it.
// - Inside a hook the frames are at rest: operands are still on the stack, all slots may be read, and replaced by equal
//   objects (cresset_eval_image). Python code that a hook runs is evaluated by CPython, unseen by the hooks.
#pragma once

#include <Python.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CressetActivation CressetActivation;

// What objects that stand for texts begin with, whose characters nobody has looked at (texts.h); str() of one looks.
typedef struct {
  PyObject_HEAD int ends_piece;  // who looks had better be told before: an operator, a call
} CressetText;
extern PyTypeObject* cresset_text_type;    // NULL: there are none yet
extern PyTypeObject* cresset_symint_type;  // likewise: as a key of a dictionary, hooks are asked about it
// Whether setting that attribute is C code's, which may take nothing but a str: f.__name__.
int cresset_is_set_by_c(PyObject* owner, PyObject* name);

// What becomes of the value that a frame returns, other than being pushed on its caller's stack.
typedef enum {
  CRESSET_THEN_PUSH = 0,  // an ordinary call
  CRESSET_THEN_INSTANCE,  // __init__: must be None; the instance, continuation_value, is pushed
  CRESSET_THEN_DROP,      // __setattr__, __setitem__, __delitem__, ...: nothing is pushed
  CRESSET_THEN_BRANCH,    // __bool__ or __len__ at a conditional jump: `continuation_operand` is the jump
  CRESSET_THEN_NEXT,      // __next__ or a generator's frame in a for loop: StopIteration ends the loop
  CRESSET_THEN_SEND,      // a generator or coroutine under yield from, await
  CRESSET_THEN_STEP,  // a generator's frame under next(g), g.send(x), g.throw(e); the operand: how much of the stack is
                      // the call
  CRESSET_THEN_CLOSE,      // a generator's frame under g.close(); likewise
  CRESSET_THEN_ITERATOR,   // __iter__: must be an iterator
  CRESSET_THEN_BOOL,       // __contains__: truth of the result, inverted if continuation_operand
  CRESSET_THEN_ATTRIBUTE,  // a property, __getattr__, ...: an AttributeError gets the name, or asks __getattr__;
                           // continuation_value is the owner; the operand: 4 * the name's index, + 1 to ask,
                           // + 2 in LOAD_METHOD
  CRESSET_THEN_AGAIN,      // items of an iterator that the instruction takes all of: a list, which takes the iterator's
                           // place on the stack, and the instruction is done again; the operand: its oparg
  CRESSET_THEN_RETURN_TO_C  // the frame was entered from C
} CressetContinuation;

// One frame that is being evaluated. The list runs from the innermost frame outwards and is valid while a hook runs.
struct CressetActivation {
  CressetActivation* caller;  // NULL in the outermost; frames that CPython evaluates in between are left out
  void* frame;                // _PyInterpreterFrame*
  PyObject* function;         // PyFunctionObject; its code may have been replaced since: use `code`
  PyCodeObject* code;
  PyObject** stack_top;    // behind the values on the stack, operands of the instruction in progress included
  int instruction;         // offset, in code units, of the instruction in progress (not of its EXTENDED_ARG)
  uint8_t entered_from_c;  // a C function lies between this frame and `caller`: no resuming across it
  uint8_t is_generator;    // the frame of a generator or coroutine; `generator` is that object
  uint8_t continuation;    // CressetContinuation
  uint8_t leave;           // set by cresset_eval_leave
  int continuation_operand;
  PyObject* continuation_value;  // owned; may be NULL
  PyObject* generator;           // borrowed; may be NULL
  void* user;                    // the session's own; NULL when the frame starts
};

// ---- Reads ----------------------------------------------------------------------------------------------------------

typedef enum {
  CRESSET_IN_GLOBALS = 0,
  CRESSET_IN_BUILTINS,
  CRESSET_IN_LOCALS,   // a class body or module: LOAD_NAME found it in f_locals
  CRESSET_IN_NOTHING,  // NameError; value is NULL
  CRESSET_IN_MODULES,  // import: mapping is sys.modules, name as the statement has it, value what it gave; NULL: failed
} CressetNamespace;

typedef enum {
  CRESSET_AT_INSTANCE = 0,  // in the owner's own __dict__ (or inline values)
  CRESSET_AT_MODULE,        // in the __dict__ of the module `owner`
  CRESSET_AT_SLOT,          // a __slots__ member or a C structure member of the instance; `found` is the descriptor
  CRESSET_AT_GETSET,        // computed by a C getter (tensor.shape, __class__, __dict__); `found` is the descriptor
  CRESSET_AT_TYPE,          // `found` in a class of type(owner)'s MRO, and bound (a method) or given as it is
  CRESSET_AT_CLASS,         // the owner is a class: `found` in a class of the owner's own MRO
  CRESSET_AT_PYTHON,   // Python code is about to compute it: property, __get__, __getattr__, __getattribute__, which
                       // is `found`; `value` is NULL, the call is told as calls are; but see `stores`
  CRESSET_AT_SUPER,    // the owner is a super object: `found` in a class behind its own
  CRESSET_AT_FOREIGN,  // the type's own C tp_getattro found it: nothing more is known
  CRESSET_AT_NOWHERE,  // AttributeError; value is NULL
} CressetAttributePlace;

typedef struct {
  PyObject* owner;
  PyObject* name;
  PyObject* value;  // what the program gets; for a method call, the unbound function (`unbound` is set)
  PyObject* found;  // the raw entry of the MRO, before binding; NULL if none
  CressetAttributePlace place;
  uint8_t unbound;  // LOAD_METHOD did not make the bound method
  uint8_t asked;    // hasattr / getattr with a default: a miss is no exception
  uint8_t stores;  // not 0: `found`, a __getattr__, needed no frame: how many stores it looked in (cresset_eval_stores)
} CressetAttributeRead;

// The class whose __dict__ `found` is in; NULL if none.
PyTypeObject* cresset_attribute_holder(const CressetAttributeRead* read);
// Of a super object: the class whose MRO it looks in (__self_class__), borrowed; NULL of one that is bound to nothing.
PyTypeObject* cresset_super_class(PyObject* super);

// ---- Writes ---------------------------------------------------------------------------------------------------------

typedef enum {
  CRESSET_WRITE_ATTRIBUTE = 0,  // owner.key = value
  CRESSET_WRITE_GLOBAL,         // owner is the globals dictionary
  CRESSET_WRITE_NAME,           // owner is f_locals (class body, module)
  CRESSET_WRITE_CELL,           // owner is the cell; key is NULL
  CRESSET_WRITE_ITEM,           // owner[key] = value
  CRESSET_WRITE_IN_PLACE,       // owner op= value; key is NULL; `operation` is the BINARY_OP argument (NB_INPLACE_*)
  CRESSET_WRITE_DISPLAY,  // a display or comprehension takes another item: owner is on the stack and nowhere else;
                          // told before only, key and value are NULL
} CressetWriteKind;

typedef struct {
  CressetWriteKind kind;
  PyObject* owner;
  PyObject* key;
  PyObject* value;  // NULL: deleted
  int operation;
} CressetWrite;

// ---- Operations that a hook may answer ------------------------------------------------------------------------------

typedef enum {
  CRESSET_FAIL = -1,    // an exception is set
  CRESSET_RUN = 0,      // do it for real (the hook may have ended a piece first)
  CRESSET_RESULT = 1,   // *result, a new reference, is the result
  CRESSET_NATIVE = 2,   // calls and frames only: do it in CPython's evaluator, callees included, unseen by the hooks
  CRESSET_INSTEAD = 3,  // calls, next(), texts of values only: call *result, which is borrowed, with the same arguments
} CressetAction;

typedef struct {
  PyObject* callable;
  PyObject* const* args;  // positional, then the values of kwnames; a method's self is the first
  Py_ssize_t nargs;       // positional ones
  PyObject* kwnames;      // tuple or NULL
  uint8_t evaluated;      // a Python function that will be evaluated here (not a C function)
} CressetCall;

// Arguments that are given by name, and all.
static inline Py_ssize_t cresset_count_named(const CressetCall* call) {
  return call->kwnames != NULL ? PyTuple_GET_SIZE(call->kwnames) : 0;
}
static inline Py_ssize_t cresset_count_arguments(const CressetCall* call) {
  return call->nargs + cresset_count_named(call);
}

enum { CRESSET_AS_BOOL = 0x100 };
typedef enum {
  CRESSET_OP_BINARY = 0,  // operation: NB_*; operands left, right. In-place ones are told as writes too
  CRESSET_OP_UNARY,       // operation: '+', '-', '~' ('!' is told as truth)
  CRESSET_OP_COMPARE,     // operation: Py_LT ... Py_GE, | CRESSET_AS_BOOL where the truth of what it gives is wanted
  CRESSET_OP_SUBSCRIPT,   // container[key]
  CRESSET_OP_CONTAINS,    // operands container, item; operation: 1 of `not in`; *result is a bool
  CRESSET_OP_FORMAT,  // f"{value!r:spec}"; operands value, spec or NULL; operation: the conversion (0, 's', 'r', 'a')
  CRESSET_OP_ITER,    // iter(value)
  CRESSET_OP_NEXT,    // next(iterator) in a for loop
  CRESSET_OP_UNPACK,  // a, b = value; operation: the number of names; only for what is no exact tuple or list
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

  // Not 0: a number that changes where what was told of names has to be told again (CRESSET_READ_TOLD).
  uint64_t told;
  // Reads: 0, or -1 with an exception set. CRESSET_READ_TOLD, of a global, a builtin or what a module has: the same
  // read by the same instruction need not be told again while the dictionaries stay as they are.
  int (*read_name)(void*, CressetActivation*, CressetNamespace where, PyObject* mapping, PyObject* name,
                   PyObject* value);
  int (*read_cell)(void*, CressetActivation*, PyObject* cell, int slot, PyObject* value);  // slot: index in localsplus
  // Of a value that C code computed: CRESSET_READ_AS_CALL, what `data_of` gives takes its place;
  // CRESSET_READ_BY_GETATTR, what `attribute_of` does.
  int (*read_attribute)(void*, CressetActivation*, const CressetAttributeRead*);
  // What C code gave of it; value is NULL where there was none.
  int (*read_item)(void*, CressetActivation*, PyObject* container, PyObject* key, PyObject* value);
  // All items are about to be taken: unpacking, star arguments, displays with stars, mapping patterns; also of what
  // class patterns look into (their subject).
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

  // Writes: 0, or -1 with an exception set. after_write is not called when the write raised.
  // 1, of an item that is stored: it is done. CRESSET_WRITE_AS_CALL: by a call of `assign`, for an item of `set_item`.
  int (*before_write)(void*, CressetActivation*, const CressetWrite*);
  int (*after_write)(void*, CressetActivation*, const CressetWrite*);

  // Truth of a value that is not a bool, None, int, float, str, or an exact list, tuple, dict, set (those are told by
  // read_length where their length is asked). Answer: 0 or 1, CRESSET_TRUTH_RUN to ask the object, -1 with an
  // exception.
  int (*truth)(void*, CressetActivation*, PyObject* value);
  // Whether two objects are one. Answers as truth does.
  int (*same)(void*, CressetActivation*, PyObject* left, PyObject* right);

  // Every call of the program. The stack still holds callable and arguments. When it is `evaluated`, enter_frame
  // follows.
  CressetAction (*before_call)(void*, CressetActivation*, const CressetCall*, PyObject** result);
  // After a call that is not `evaluated`; *result is NULL when it raised `exception`, else a reference that may be
  // exchanged, or that takes the place of the exception. 0, or -1 with an exception set.
  int (*after_call)(void*, CressetActivation*, const CressetCall*, PyObject** result, PyObject* exception);
  // Not told when all operands are exact int, float, bool, str, None; but see tells_all.
  uint8_t tells_all;  // may be set, and taken back, while frames are evaluated
  CressetAction (*before_operator)(void*, CressetActivation*, const CressetOperator*, PyObject** result);

  // A frame that was entered from C, or whose result decides a branch, returns `value`, which is no plain number or
  // text: a new reference to what stands in its place, or NULL with an exception set.
  PyObject* (*return_to_c)(void*, CressetActivation*, PyObject* value);

  // Before every instruction (prefixes and KW_NAMES belong to what follows them). Slow; for tests and debuggers.
  int (*step)(void*, CressetActivation*);

  // A frame goes on in CPython's own loop because somebody watches its code: what it does is not told.
  void (*unseen)(void*);

  // A frame starts or is resumed (activation->instruction < 0: it starts). CRESSET_RUN or CRESSET_NATIVE.
  CressetAction (*enter_frame)(void*, CressetActivation*);
  // It returned, yielded, or raised (value NULL, an exception set: leave it set). 0, or -1 with an exception set.
  int (*leave_frame)(void*, CressetActivation*, PyObject* value);
} CressetEvalHooks;

#define CRESSET_TRUTH_RUN 2
#define CRESSET_WRITE_AS_CALL 2
#define CRESSET_READ_TOLD 1
#define CRESSET_READ_AS_CALL 2
#define CRESSET_READ_BY_GETATTR 3

// ---- Entry points ---------------------------------------------------------------------------------------------------

// NULL if the running CPython can be evaluated; else why not, in one sentence.
const char* cresset_eval_unsupported(void);

// Objects of this type are called as the callable that `inside` gives (borrowed).
void cresset_eval_see_through(PyTypeObject* type, PyObject* (*inside)(PyObject*));
// Functions of this code are called as what the closure's cell of that index holds.
void cresset_eval_see_through_wrappers(PyObject* code, Py_ssize_t cell);
// What such a function holds, or one that torch.compile made (borrowed); NULL for others.
PyObject* cresset_eval_wrapped(PyObject* callable);

// Functions of this code that are a class's __getattr__ and nothing more (no closure, no attributes) look the name up
// in dictionaries that the instance's own has under these names (a tuple of strings), one after the other, and raise
// where none has it. What is found there is given without a frame.
void cresset_eval_looks_in_stores(PyObject* code, PyObject* names);
PyObject* cresset_eval_stores(void);  // the names, borrowed
// What a dictionary has under a name, an exact str, as PyDict_GetItemWithError gives it. Names lie at the same place in
// the dictionaries of many objects: that is looked at first.
PyObject* cresset_eval_item(PyObject* dict, PyObject* name);

// Starts and ends evaluating new frames of this thread. Nests: the innermost table is told. 0, or -1 with an exception.
int cresset_eval_begin(const CressetEvalHooks* hooks);
void cresset_eval_end(void);
// In between, lets frames of this thread run in CPython's evaluator (code of ours that is no part of the program).
void cresset_eval_pause(void);
void cresset_eval_unpause(void);

// Sets aside what this thread evaluates, as if it evaluated nothing, and takes it back. NULL: nothing could be set
// aside, for want of memory, or was to be.
void* cresset_eval_set_aside(void);
void cresset_eval_take_back(void* aside);

// Calls with every frame evaluated; between begin and end. args: tuple; kwargs: dict or NULL.
PyObject* cresset_eval_call(PyObject* callable, PyObject* args, PyObject* kwargs);

// Tells of the objects in the youngest generation; of those made since *mark was last given, where it is not NULL.
// mark: an object of the caller's to be, owned, which stands at the end of the generation.
void cresset_eval_visit_young(PyObject** mark, void (*visit)(void*, PyObject*), void* arg);

// Whether the Python object is the activation's frame.
int cresset_eval_is_frame(const CressetActivation* activation, PyObject* frame_object);

// Whether somebody watches all code of this thread: a trace or profile function, a tool of sys.monitoring.
int cresset_eval_is_watched(void);

// The innermost activation of this thread, or NULL.
CressetActivation* cresset_eval_current(void);
// Whether an exception of the instruction may end in its code: an `except` is around it, or a `finally` that keeps it.
int cresset_may_catch(PyCodeObject* code, int instruction);

// `if condition: x = x.method(a, b)` and nothing else: what the jump in progress spares. Arguments are locals (a slot)
// or constants (slot -1).
enum { CRESSET_SPARED_ARGUMENTS = 8 };
typedef struct {
  int slot;          // x
  PyObject* method;  // its name
  int count;
  int slots[CRESSET_SPARED_ARGUMENTS];
  PyObject* constants[CRESSET_SPARED_ARGUMENTS];
} CressetSparedCall;
// 0 when the truth that the instruction in progress asks for decides something else.
int cresset_eval_spared_call(const CressetActivation* activation, CressetSparedCall* out);

typedef enum {
  CRESSET_LEAVE_FRAME =
      0,              // this frame goes on in CPython's evaluator at the next instruction; its callees are evaluated
  CRESSET_LEAVE_ALL,  // so do all frames of this thread, until cresset_eval_end
} CressetLeave;
void cresset_eval_leave(CressetActivation* activation, CressetLeave what);

// What a frame is made of. Pointers into live frames are borrowed, valid while the hook runs; slots may be replaced
// there (the old reference released, the new one owned by the frame). What was there has to live until the operation in
// progress has ended, which may look at it.
typedef struct {
  PyObject* function;
  PyCodeObject* code;
  PyObject* names;   // f_locals of class bodies and modules; NULL in functions
  PyObject** slots;  // localsplus: parameters, locals, cells, free variables; entries may be NULL
  int slot_count;
  PyObject** stack;  // from the bottom; entries may be NULL
  int stack_depth;
  int last;              // evaluation goes on at the code unit after this one; -1: at the start
  uint8_t continuation;  // as in the activation
  int continuation_operand;
  PyObject* continuation_value;
  PyObject* generator;  // the generator whose frame this is; NULL in functions. To cresset_eval_resume: a suspended
                        // one, whose own frame goes on; slots and stack are not looked at
  PyObject* handled;    // the exception being handled (what a bare `raise` raises) in the innermost frame, and in those
                        // that called a generator; else NULL
} CressetFrameImage;

// Fills `image` from a live frame. For a frame with a callee in progress, `last` is the end of its call. For the
// innermost one, CRESSET_BEFORE gives the state in which the instruction in progress has not begun (prefixes and
// KW_NAMES will be evaluated again), CRESSET_AFTER the state after it, operands popped, its result not yet pushed.
// A with statement's entry has no BEFORE once its call is told: the manager is gone from the stack, __exit__ is there.
typedef enum { CRESSET_BEFORE = 0, CRESSET_AFTER } CressetPoint;
void cresset_eval_image(const CressetActivation* activation, CressetPoint point, CressetFrameImage* image);

// Whether it counts as running, though its frame is suspended: what it delegates to is being closed, or thrown into.
int cresset_eval_is_being_closed(PyObject* generator);

// The same of a generator, coroutine or asynchronous generator that is not running. 0, 1 when it is finished, or -1
// when it runs.
int cresset_eval_generator_image(PyObject* generator, CressetFrameImage* image);
// A new suspended generator from an image of one (suspended, or running). `generator` of the image is not looked at.
PyObject* cresset_eval_rebuild_generator(const CressetFrameImage* image);
// In two steps: a generator of this code that holds nothing yet; then, and also for one that is suspended, its contents
// become the image's (NULL: it is finished). No code of the program runs.
PyObject* cresset_eval_new_generator(PyCodeObject* code);
int cresset_eval_set_generator(PyObject* generator, const CressetFrameImage* image);
// Slots and stack of a generator, where `index` counts through both; it may run, if its frame is at rest. NULL when
// there is none of that index, or it is finished.
PyObject** cresset_eval_generator_slot(PyObject* generator, int index);
// Where an entry of a dictionary lies: an equal key or another value takes the place of one, and no `__hash__` or
// `__eq__` of the program is asked. 1, *value NULL for an entry that is not used; 0 behind the last; -1 where the keys
// are texts alone (of a namespace), and where somebody watches the dictionary.
int cresset_eval_dict_entry(PyObject* dict, Py_ssize_t index, PyObject*** key, PyObject*** value);
int cresset_eval_dict_changed(PyObject* dict);  // afterwards: it has a version of its own again; -1 out of memory

// Which of the code's slots (co_nlocalsplus of them) a frame may still read when it goes on behind `last`, or where an
// exception of that instruction is handled: 1 or 0 each. Cells always may. -1 when the code cannot be read.
int cresset_eval_live_slots(PyCodeObject* code, int last, uint8_t* live);
// Whether it may then give the cell in that slot another content, or take it away.
int cresset_eval_may_change_cell(PyCodeObject* code, int last, int slot);

// Whether the value that is then on top of its stack is dropped at once.
int cresset_eval_drops_value(PyCodeObject* code, int last);

// Rebuilds frames, outermost first, and evaluates the innermost, then, with what it returns, the one around it, to the
// end of the outermost, whose result is returned. References of the images are copied, not stolen. `value`: pushed on
// the innermost stack before it goes on; may be NULL. `exception`: raised there instead; may be NULL.
// natively: in CPython's evaluator (callees are evaluated here only if the thread is between begin and end).
// contents: may be NULL; what it points to, a reference that keeps what the images hold, is dropped once the frames
// have references of their own, so that objects die when the program drops them.
PyObject* cresset_eval_resume(const CressetFrameImage* images, int count, PyObject* value, PyObject* exception,
                              int natively, PyObject** contents);

#ifdef __cplusplus
}
#endif
