//! A PostgreSQL server of the test's own: on loopback, in a directory of its own, gone at the end.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A running server.
pub struct Server {
    directory: PathBuf,
    programs: PathBuf,
    port: u16,
}

fn programs() -> Option<PathBuf> {
    let has = |dir: &Path| dir.join("initdb").exists() && dir.join("pg_ctl").exists();
    let packaged = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let packaged = packaged.map(|e| e.path().join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    packaged.chain(std::env::split_paths(&path)).find(|dir| has(dir))
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0)
}

/// A command that runs as a user whom PostgreSQL accepts.
fn command(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--init-groups"]).arg(program);
    command
}

fn run(command: &mut Command) {
    // Not to a pipe: the server would keep it open.
    let status = command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).status();
    assert!(status.as_ref().is_ok_and(std::process::ExitStatus::success), "{command:?}: {status:?}");
}

impl Server {
    /// Starts one; `Err`: the reason why there is none here.
    pub fn start(name: &str) -> Result<Server, String> {
        let programs = programs().ok_or("PostgreSQL (initdb, pg_ctl) is not installed")?;
        let directory = std::env::temp_dir().join(format!("sieva-pg-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).map_err(|e| e.to_string())?;
        if is_root() {
            run(Command::new("chown").arg("postgres").arg(&directory));
        }
        let data = directory.join("data");
        let mut init = command(&programs.join("initdb"));
        init.args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-D"])
            .arg(&data);
        run(init.current_dir(&directory));
        let free =
            TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).map_err(|e| e.to_string())?;
        let options = format!(
            "-h 127.0.0.1 -p {} -k {} -c fsync=off -c synchronous_commit=off -c shared_buffers=32MB",
            free.port(),
            directory.display()
        );
        let server = Server { directory, programs, port: free.port() };
        let mut start = command(&server.programs.join("pg_ctl"));
        start.arg("-D").arg(&data).args(["-s", "-w", "-t", "60", "-o", &options, "-l"]);
        run(start.arg(server.directory.join("log")).arg("start").current_dir(&server.directory));
        Ok(server)
    }

    /// The URL of a database, which is made anew.
    pub fn database(&self, name: &str) -> String {
        let mut create = command(&self.programs.join("createdb"));
        let port = self.port.to_string();
        run(create
            .args(["-h", "127.0.0.1", "-p", &port, "-U", "postgres", name])
            .current_dir(&self.directory));
        format!("postgresql://postgres@127.0.0.1:{port}/{name}")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut stop = command(&self.programs.join("pg_ctl"));
        stop.arg("-D").arg(self.directory.join("data")).args(["-s", "-m", "immediate", "-w", "stop"]);
        let _ = stop.current_dir(&self.directory).status();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
