package mtosi_jms;

import java.io.Closeable;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Iterator;
import java.util.NoSuchElementException;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.util.SerializableConfiguration;
import org.apache.spark.util.TaskCompletionListener;

/**
 * Lists folders and reads files of any Hadoop file system in the tasks of Spark, which Spark's Python workers cannot.
 *
 * Spark compiles this file with Janino, the compiler of its own generated code: no type arguments of methods, no
 * lambdas. Nothing here holds more than one chunk of a file, or more of a folder than its file system hands out at once.
 * What fails becomes a row with the reason, so that one file does not end the job.
 */
public final class HadoopFiles implements FlatMapFunction {
    public static final int ROOTS = 0;
    public static final int FOLDERS = 1;
    public static final int CONTENTS = 2;

    private static final long serialVersionUID = 1L;

    private final int task;
    private final int chunk;
    private final Broadcast conf;

    /**
     * @param task ROOTS: takes (path) and gives (path, size, time, folder, named, error): a file, or what lies in a
     *     folder, or in what matches a glob. FOLDERS: the same for files in and below a folder. CONTENTS: takes (path,
     *     size, time, facts) and gives (path, part, last, error, facts): a file in parts, facts only with the first. A
     *     row without a path hands on its facts.
     * @param chunk bytes of a part
     * @param conf a SerializableConfiguration
     */
    public HadoopFiles(int task, int chunk, Broadcast conf) {
        this.task = task;
        this.chunk = chunk;
        this.conf = conf;
    }

    public Iterator call(Object input) {
        Row row = (Row) input;
        if (task == CONTENTS) {
            return new Contents(row);
        }
        Listing listing = new Listing(task == FOLDERS);
        if (task == ROOTS) {
            listing.root(row.getString(0));
        } else {
            listing.folders.add(new Path(row.getString(0)));
        }
        return listing;
    }

    private FileSystem open(Path path) throws IOException {
        FileSystem files = path.getFileSystem(((SerializableConfiguration) conf.value()).value());
        return files instanceof LocalFileSystem ? ((LocalFileSystem) files).getRawFileSystem() : files;
    }

    static String reason(Exception error) {
        if (error instanceof FileNotFoundException) {
            return "no such file or folder";
        }
        if (error instanceof ChangedException) {
            return error.getMessage();
        }
        Throwable cause = error;
        while (cause.getMessage() == null && cause.getCause() != null) {
            cause = cause.getCause();
        }
        String text = String.valueOf(cause.getMessage());
        int end = text.indexOf('\n');
        return cause.getClass().getSimpleName() + ": " + (end < 0 ? text : text.substring(0, end));
    }

    static final class ChangedException extends IOException {
        ChangedException() {
            super("has changed since it was listed");
        }
    }

    /** What lies in folders, a page of the file system's at a time. */
    private final class Listing implements Iterator {
        final ArrayDeque folders = new ArrayDeque();
        private final boolean deep;
        private Iterator matches = Arrays.asList(new Object[0]).iterator();
        private Path folder;
        private RemoteIterator inside;
        private Row next;

        Listing(boolean deep) {
            this.deep = deep;
        }

        void root(String text) {
            Path path = new Path(text);
            try {
                FileSystem files = open(path);
                FileStatus status;
                try {
                    status = files.getFileStatus(path);
                } catch (FileNotFoundException missing) {
                    FileStatus[] found = files.globStatus(path);
                    if (found == null || found.length == 0) {
                        throw missing;
                    }
                    matches = Arrays.asList((Object[]) found).iterator();
                    return;
                }
                if (status.isDirectory()) {
                    folders.add(path);
                } else {
                    next = row(status, true);
                }
            } catch (Exception error) {
                next = failed(path, error);
            }
        }

        public boolean hasNext() {
            while (next == null) {
                if (matches.hasNext()) {
                    FileStatus match = (FileStatus) matches.next();
                    if (match.isDirectory()) {
                        folders.add(match.getPath());
                    } else {
                        next = row(match, false);
                    }
                } else if (inside == null && folders.isEmpty()) {
                    return false;
                } else {
                    advance();
                }
            }
            return true;
        }

        private void advance() {
            try {
                if (inside == null) {
                    folder = (Path) folders.poll();
                    inside = open(folder).listStatusIterator(folder);
                }
                if (!inside.hasNext()) {
                    inside = null;
                    return;
                }
                FileStatus status = (FileStatus) inside.next();
                if (deep && status.isDirectory()) {
                    folders.add(status.getPath());
                } else {
                    next = row(status, false);
                }
            } catch (Exception error) {
                inside = null;
                next = failed(folder, error);
            }
        }

        public Object next() {
            if (!hasNext()) {
                throw new NoSuchElementException();
            }
            Row row = next;
            next = null;
            return row;
        }

        public void remove() {
            throw new UnsupportedOperationException();
        }

        private Row row(FileStatus status, boolean named) {
            return RowFactory.create(new Object[] {
                status.getPath().toString(), Long.valueOf(status.getLen()), Long.valueOf(status.getModificationTime()),
                Boolean.valueOf(status.isDirectory()), Boolean.valueOf(named), null
            });
        }

        private Row failed(Path path, Exception error) {
            return RowFactory.create(new Object[] {
                path.toString(), Long.valueOf(0), Long.valueOf(0), Boolean.FALSE, Boolean.FALSE, reason(error)
            });
        }
    }

    /** The parts of a file that is still what it was when it was listed. */
    private final class Contents implements Iterator, TaskCompletionListener {
        private final String path;
        private final long size;
        private final long time;
        private Object facts;
        private InputStream stream;
        private long done;
        private boolean over;

        Contents(Row row) {
            path = row.getString(0);
            size = row.getLong(1);
            time = row.getLong(2);
            facts = row.get(3);
        }

        public boolean hasNext() {
            return !over;
        }

        public Object next() {
            if (path.isEmpty()) {
                over = true;
                return RowFactory.create(new Object[] {path, new byte[0], Boolean.TRUE, null, facts});
            }
            byte[] part = new byte[0];
            String error = null;
            try {
                if (stream == null) {
                    start();
                }
                part = read((int) Math.min(chunk, size - done));
                done += part.length;
                over = done == size;
                if (over && stream.read() >= 0) {
                    throw new ChangedException();
                }
            } catch (Exception problem) {
                over = true;
                error = reason(problem);
            }
            if (over) {
                close();
            }
            Row row = RowFactory.create(new Object[] {path, part, Boolean.valueOf(over), error, facts});
            facts = null;
            return row;
        }

        private void start() throws Exception {
            Path file = new Path(path);
            FileSystem files = open(file);
            FileStatus now = files.getFileStatus(file);
            if (now.getLen() != size || now.getModificationTime() != time) {
                throw new ChangedException();
            }
            stream = files.open(file);
            TaskContext context = TaskContext.get();
            if (context != null && size > chunk) {
                context.addTaskCompletionListener(this);
            }
        }

        private byte[] read(int wanted) throws IOException {
            byte[] part = new byte[wanted];
            int held = 0;
            while (held < wanted) {
                int more = stream.read(part, held, wanted - held);
                if (more < 0) {
                    throw new ChangedException();
                }
                held += more;
            }
            return part;
        }

        public void onTaskCompletion(TaskContext context) {
            close();
        }

        private void close() {
            if (stream != null) {
                try {
                    stream.close();
                } catch (IOException ignored) {
                    // what was read is whole all the same
                }
            }
        }

        public void remove() {
            throw new UnsupportedOperationException();
        }
    }
}
