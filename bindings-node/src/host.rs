//! The host: Node's event loop, which does the I/O of the calls made on its thread. All the unsafe code of this package is here and in
//! `wake.rs`, except one block in `client.rs` and one in `date.rs`.
//!
//! Node's event loop is libuv's. It watches the sockets of each client (`uv_poll`). Before it sleeps, it sends those calls of this
//! iteration that are not sent yet (`uv_prepare`). Neither keeps the loop alive. The functions are looked up in the running program, because other
//! runtimes that load Node's addons have no libuv. There the core's I/O thread does all the work, and so it does on Windows, where there
//! is no descriptor of all connections that a loop could watch.
//!
//! All this code runs on the thread of one environment. When the environment ends, its handles must be closed. This takes an
//! iteration of the loop, so the clean-up hook is asynchronous.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;

use locktender::host::{Driver, Watch};
use napi::Env;
use napi::bindgen_prelude::{FunctionRef, JsValue};
use napi_sys as sys;

use crate::queue::Queue;

type Handle = *mut c_void;
type OnReady = unsafe extern "C" fn(Handle, c_int, c_int);
type OnTurn = unsafe extern "C" fn(Handle);

/// From libuv's header, which promises them for all of version 1.
const READABLE: c_int = 1;
const POLL_HANDLE: c_int = 8;
const PREPARE_HANDLE: c_int = 9;

/// libuv's functions.
#[derive(Clone, Copy)]
struct Uv {
    handle_size: unsafe extern "C" fn(c_int) -> usize,
    unref: unsafe extern "C" fn(Handle),
    close: unsafe extern "C" fn(Handle, OnTurn),
    poll_init: unsafe extern "C" fn(*mut c_void, Handle, c_int) -> c_int,
    poll_start: unsafe extern "C" fn(Handle, c_int, OnReady) -> c_int,
    prepare_init: unsafe extern "C" fn(*mut c_void, Handle) -> c_int,
    prepare_start: unsafe extern "C" fn(Handle, OnTurn) -> c_int,
}

impl Uv {
    fn find() -> Option<Self> {
        #[cfg(unix)]
        let program = libloading::os::unix::Library::this();
        #[cfg(windows)]
        let program = libloading::os::windows::Library::this().ok()?;
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: the types above are those of libuv's header.
                *unsafe { program.get($name) }.ok()?
            };
        }
        Some(Self {
            handle_size: function!(b"uv_handle_size"),
            unref: function!(b"uv_unref"),
            close: function!(b"uv_close"),
            poll_init: function!(b"uv_poll_init"),
            poll_start: function!(b"uv_poll_start"),
            prepare_init: function!(b"uv_prepare_init"),
            prepare_start: function!(b"uv_prepare_start"),
        })
    }

    /// Memory for a handle of this kind.
    fn allocate(&self, kind: c_int) -> Handle {
        // SAFETY: asks for a number.
        let size = unsafe { (self.handle_size)(kind) };
        Box::into_raw(vec![0_u64; size.div_ceil(8)].into_boxed_slice()).cast()
    }

    /// # Safety
    /// `handle` came from `allocate(kind)`, and libuv doesn't know it, or not any more.
    unsafe fn free(&self, handle: Handle, kind: c_int) {
        // SAFETY: the length is that of `allocate`.
        drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(handle.cast::<u64>(), (self.handle_size)(kind).div_ceil(8))) });
    }
}

/// The object to which a handle belongs.
struct Owned {
    host: Rc<Host>,
    kind: c_int,
    watch: RefCell<Option<Watch>>,
}

/// One environment's event loop.
pub(crate) struct Host {
    env: sys::napi_env,
    uv: Uv,
    uv_loop: *mut c_void,
    drain: sys::napi_ref,
    queue: Arc<Queue>,
    turn: Cell<Handle>,
    /// The watched sockets, by the numbers of the drivers.
    watched: RefCell<HashMap<u64, Handle>>,
    /// Handles that the loop has not forgotten.
    open: Cell<usize>,
    cleanup: Cell<sys::napi_async_cleanup_hook_handle>,
}

impl Host {
    /// Lets an environment's loop execute the calls of its thread, if it can. `drain` is called after a result arrived.
    pub(crate) fn start(env: &Env, drain: &FunctionRef<(), ()>, queue: &Arc<Queue>) -> Option<Rc<Self>> {
        let uv = Uv::find().filter(|_| cfg!(unix))?;
        let drain = drain.borrow_back(env).ok()?;
        let mut reference = ptr::null_mut();
        // SAFETY: both are of this environment, on its thread.
        let status = unsafe { sys::napi_create_reference(env.raw(), drain.raw(), 1, &raw mut reference) };
        let host = Rc::new(Self {
            env: env.raw(),
            uv,
            uv_loop: env.get_uv_event_loop().ok()?.cast(),
            drain: reference,
            queue: Arc::clone(queue),
            turn: Cell::new(ptr::null_mut()),
            watched: RefCell::default(),
            open: Cell::new(0),
            cleanup: Cell::new(ptr::null_mut()),
        });
        // A loop that was only prepared has nothing to send.
        let started = status == sys::Status::napi_ok && host.clean_up_at_the_end() && host.prepare();
        queue.set_hosted(started);
        started.then_some(host)
    }

    /// Lets the loop send the calls of this iteration before it sleeps.
    fn prepare(self: &Rc<Self>) -> bool {
        let handle = self.uv.allocate(PREPARE_HANDLE);
        // SAFETY: the memory is the handle's until it is closed, or here if libuv does not take it.
        unsafe {
            if (self.uv.prepare_init)(self.uv_loop, handle) != 0 {
                self.uv.free(handle, PREPARE_HANDLE);
                return false;
            }
            self.own(handle, PREPARE_HANDLE, None);
            self.turn.set(handle);
            (self.uv.prepare_start)(handle, on_turn) == 0
        }
    }

    /// Sends the commands of a client, and lets the loop read the answers from now on.
    fn send(self: &Rc<Self>, driver: Driver) {
        let known = self.watched.borrow().get(&driver.id()).copied();
        match known {
            // SAFETY: what is watched is not closed.
            Some(handle) => unsafe { owner(handle) }.watch.borrow().iter().for_each(Watch::send),
            None => self.watch(driver),
        }
    }

    fn watch(self: &Rc<Self>, driver: Driver) {
        self.forget_what_is_over();
        let (id, watch) = (driver.id(), driver.watch());
        watch.send();
        let Some(descriptor) = watch.descriptor() else { return };
        let handle = self.uv.allocate(POLL_HANDLE);
        // SAFETY: as above; the watch keeps the descriptor open until the handle is closed.
        unsafe {
            if (self.uv.poll_init)(self.uv_loop, handle, descriptor) != 0 {
                // Then the I/O thread handles it.
                return self.uv.free(handle, POLL_HANDLE);
            }
            self.own(handle, POLL_HANDLE, Some(watch));
            (self.uv.poll_start)(handle, READABLE, on_ready);
        }
        self.watched.borrow_mut().insert(id, handle);
    }

    /// Forgets the clients that were closed. Nothing of them is open then.
    pub(crate) fn forget_what_is_over(&self) {
        self.watched.borrow_mut().retain(|_, handle| {
            // SAFETY: what is watched is not closed, and is closed once.
            let watch = &unsafe { owner(*handle) }.watch;
            let over = watch.borrow().as_ref().is_none_or(Watch::is_over);
            if over {
                unsafe { (self.uv.close)(*handle, on_close) };
                // libuv polls a descriptor no more once its handle is being closed. So the watch can close it at once.
                watch.take();
            }
            !over
        });
    }

    /// # Safety
    /// `handle` was initialised, and is not owned yet.
    unsafe fn own(self: &Rc<Self>, handle: Handle, kind: c_int, watch: Option<Watch>) {
        let owned = Box::new(Owned { host: Rc::clone(self), kind, watch: RefCell::new(watch) });
        self.open.set(self.open.get() + 1);
        // SAFETY: see `owner`; `on_close` takes the box back.
        unsafe {
            handle.cast::<*mut Owned>().write(Box::into_raw(owned));
            (self.uv.unref)(handle);
        }
    }

    fn clean_up_at_the_end(self: &Rc<Self>) -> bool {
        let host = Rc::into_raw(Rc::clone(self)).cast_mut().cast();
        // SAFETY: `on_end` takes the reference back.
        let status = unsafe { sys::napi_add_async_cleanup_hook(self.env, Some(on_end), host, ptr::null_mut()) };
        status == sys::Status::napi_ok
    }

    /// Releases the environment after it has ended and all handles are closed.
    fn finish(&self) {
        let hook = self.cleanup.get();
        if self.open.get() == 0 && !hook.is_null() {
            self.cleanup.set(ptr::null_mut());
            // SAFETY: the hook is this host's, and is removed once.
            unsafe { sys::napi_remove_async_cleanup_hook(hook) };
        }
    }

    /// Calls JavaScript's `drain`. Then, as after every callback of Node, the code that waits for the results runs.
    fn drain(&self) {
        let (mut scope, mut drain, mut global) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        // SAFETY: on the environment's thread, while it lives: the handles are closed when it ends.
        unsafe {
            sys::napi_open_handle_scope(self.env, &raw mut scope);
            sys::napi_get_reference_value(self.env, self.drain, &raw mut drain);
            sys::napi_get_global(self.env, &raw mut global);
            let status = sys::napi_make_callback(self.env, ptr::null_mut(), global, drain, 0, ptr::null(), ptr::null_mut());
            if status == sys::Status::napi_pending_exception {
                let mut exception = ptr::null_mut();
                sys::napi_get_and_clear_last_exception(self.env, &raw mut exception);
                sys::napi_fatal_exception(self.env, exception);
            }
            sys::napi_close_handle_scope(self.env, scope);
        }
    }
}

/// The object to which a handle belongs.
///
/// # Safety
/// `own` was called for the handle, and `on_close` was not.
unsafe fn owner<'a>(handle: Handle) -> &'a Owned {
    // SAFETY: libuv promises that the user's data is the first member of a handle, where `own` put it.
    unsafe { &**handle.cast::<*const Owned>() }
}

/// The callback for arrived bytes.
unsafe extern "C" fn on_ready(handle: Handle, _status: c_int, _events: c_int) {
    // SAFETY: the handle is watched, so it is not closed.
    let owned = unsafe { owner(handle) };
    let host = Rc::clone(&owned.host);
    host.queue.polling(|| {
        let over = owned.watch.borrow().as_ref().is_some_and(|watch| {
            watch.poll();
            watch.is_over()
        });
        if over {
            host.forget_what_is_over();
        }
        if host.queue.has_items() {
            host.drain();
        }
    });
}

/// The callback before the loop sleeps.
unsafe extern "C" fn on_turn(handle: Handle) {
    // SAFETY: the handle is started, so it is not closed.
    let host = Rc::clone(unsafe { &owner(handle).host });
    host.queue.take_unsent().into_iter().for_each(|driver| host.send(driver));
}

/// The callback after the loop has closed a handle.
unsafe extern "C" fn on_close(handle: Handle) {
    // SAFETY: `own` made the box and put it there, and nobody uses it any more.
    let Owned { host, kind, .. } = *unsafe { Box::from_raw(*handle.cast::<*mut Owned>()) };
    // SAFETY: libuv has forgotten it.
    unsafe { host.uv.free(handle, kind) };
    host.open.set(host.open.get() - 1);
    host.finish();
}

/// The callback at the end of the environment.
unsafe extern "C" fn on_end(hook: sys::napi_async_cleanup_hook_handle, host: *mut c_void) {
    // SAFETY: `clean_up_at_the_end` gave it, for this one call.
    let host = unsafe { Rc::from_raw(host.cast_const().cast::<Host>()) };
    host.cleanup.set(hook);
    // The I/O thread finishes the calls under way.
    host.queue.set_hosted(false);
    host.queue.take_unsent().iter().for_each(Driver::send);
    let turn = Some(host.turn.replace(ptr::null_mut())).filter(|turn| !turn.is_null());
    for handle in host.watched.take().into_values().chain(turn) {
        // SAFETY: an open handle of this loop's; its memory goes once the loop has forgotten it.
        unsafe { (host.uv.close)(handle, on_close) };
    }
    host.finish();
}
