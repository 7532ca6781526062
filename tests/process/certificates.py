"""Certificates for tests, made with the openssl program: an authority, and what it signs."""

import os
import subprocess

NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


class Authority:
    """An authority in a folder of its own. Its files: ca.pem, and NAME.pem with NAME.key for each
    certificate."""

    def __init__(self, folder, name="test authority"):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        self.certificate = self.path("ca.pem")
        self._key = self.path("ca.key")
        self._serial = 1
        self._revoked = []
        self._openssl("req", "-x509", *NEW_KEY, "-days", "30",
                      "-subj", f"/CN={name}", "-keyout", self._key, "-out", self.certificate,
                      "-addext", "basicConstraints=critical,CA:TRUE",
                      "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def path(self, name):
        return os.path.join(self.folder, name)

    def certify(self, name, uri=None, hosts=("localhost", "127.0.0.1"), days=30, usage="serverAuth,clientAuth"):
        """Makes NAME.pem and NAME.key, and returns both paths."""
        certificate, key, request = self.path(f"{name}.pem"), self.path(f"{name}.key"), self.path(f"{name}.csr")
        self._openssl("req", "-new", *NEW_KEY,
                      "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        os.chmod(key, 0o600)
        names = [f"IP:{host}" if host[0].isdigit() else f"DNS:{host}" for host in hosts]
        names += [f"URI:{uri}"] if uri else []
        extensions = self.path(f"{name}.ext")
        with open(extensions, "w", encoding="utf-8") as file:
            file.write(f"basicConstraints=CA:FALSE\nextendedKeyUsage={usage}\n")
            if names:
                file.write(f"subjectAltName={','.join(names)}\n")
        self._serial += 1
        self._openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self._key,
                      "-set_serial", str(self._serial), "-days", str(days), "-extfile", extensions, "-out", certificate)
        return certificate, key

    def revoke(self, *names):
        """Adds these to the list of revoked certificates, and returns its path. Without names: as it is."""
        self._revoked += [self.path(f"{name}.pem") for name in names]
        config, index, out = self.path("crl.cnf"), self.path("crl.index"), self.path("crl.pem")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"[ca]\ndefault_ca=here\n[here]\ndatabase={index}\ndefault_md=sha256\ndefault_crl_days=30\n")
        with open(index, "w", encoding="utf-8"):
            pass
        signer = ("-config", config, "-cert", self.certificate, "-keyfile", self._key)
        for certificate in self._revoked:
            self._openssl("ca", *signer, "-revoke", certificate)
        self._openssl("ca", *signer, "-gencrl", "-out", out)
        return out

    def _openssl(self, *words):
        done = subprocess.run(["openssl", *words], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"openssl {' '.join(words)}: {done.stderr}")
